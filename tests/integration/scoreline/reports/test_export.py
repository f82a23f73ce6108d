"""`scoreline batch export` on a real database: each format is read back with its standard parser."""

import csv
import json
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # pyarrow ships no types
import pytest

from eventlog import payloads as p
from scoreline.command_error import CommandError
from scoreline.reports import export as exporting
from tests.integration.place import life
from tests.integration.scoreline.batch_harness import WILD, Harness, harness, spec
from tests.integration.worker import SCORELINE, environment

WORDS = ["passed", "failed", "dead", "timed_out", "cancelled", "known", "retried", "queued"]


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Harness]:
    """A batch with every outcome, and outputs with control characters and formulas."""
    async with harness(postgres_url, redis_url) as made:
        await made.submit("nightly", WORDS, output=WILD, about=spec("https://me:hunter2@model"))
        yield made


async def exported(here: Harness, path: Path, *more: str) -> bytes:
    ran = await here.run("export", "nightly", "-o", str(path), *more)
    assert ran.exit_code == 0, ran.exception
    assert ran.stdout == ""
    written = contents(path)
    assert b"hunter2" not in written
    return written


def contents(path: Path) -> bytes:
    return path.read_bytes()


def names(directory: Path) -> list[str]:
    return [each.name for each in directory.iterdir()]


async def test_json_lines_have_all_fields_in_the_order_of_the_dataset(
    here: Harness, tmp_path: Path
) -> None:
    """Each row has the case, the recorded output, and the error of an evaluation that did not complete."""
    rows = [json.loads(line) for line in (await exported(here, tmp_path / "out.jsonl")).splitlines()]
    assert [row["case_id"] for row in rows] == [f"case-{number}" for number in range(1, 9)]
    by_word = dict(zip(WORDS, rows, strict=True))
    passed = by_word["passed"]
    assert (passed["input"], passed["expected"], passed["output"]) == ({"q": 0}, "4", WILD)
    assert (passed["status"], passed["verdict"], passed["passed"], passed["score"]) == (
        "completed",
        "passed",
        True,
        1.0,
    )
    assert passed["scores"] == [{"evaluator": "exact", "score": 1.0, "passed": True, "reason": f"{WILD}!"}]
    assert (passed["tokens"], passed["cost_usd"], passed["latency_ms"], passed["exit_code"]) == (
        7,
        0.25,
        1500.0,
        0,
    )
    assert (passed["target"], passed["prompt"], passed["repetition"]) == (
        "https://me:***@model",
        "{input}",
        1,
    )
    assert by_word["dead"]["error"] == {"kind": "permanent", "message": "no such model"}
    assert by_word["timed_out"]["error"]["message"] == "the task limit of 60 s passed"
    assert by_word["cancelled"]["error"] == {"kind": "cancelled", "message": "by operator"}
    assert (by_word["known"]["output"], by_word["retried"]["attempts"]) == (WILD, 2)
    assert (by_word["queued"]["status"], by_word["queued"]["output"], by_word["queued"]["ended_at"]) == (
        "queued",
        None,
        None,
    )
    assert datetime.fromisoformat(passed["ended_at"]).tzinfo is not None


async def test_csv_is_safe_from_formula_injection(here: Harness, tmp_path: Path) -> None:
    """The file parses, and text that a spreadsheet would run begins with an apostrophe."""
    await exported(here, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(WORDS)
    assert rows[0]["output"] == f"'{WILD}"
    assert json.loads(rows[0]["input"]) == {"q": 0}
    assert (rows[0]["passed"], rows[0]["score"], rows[2]["error"]) == (
        "true",
        "1.0",
        "permanent: no such model",
    )
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for row in rows for cell in row.values())


async def test_junit_is_well_formed_for_any_output(here: Harness, tmp_path: Path) -> None:
    """The counts of failures, errors and skips match the cases; control characters are removed."""
    root = ET.fromstring(await exported(here, tmp_path / "out.xml"))
    [suite] = root.findall("testsuite")
    assert {name: suite.get(name) for name in ("name", "tests", "failures", "errors", "skipped")} == {
        "name": "a batch", "tests": "8", "failures": "1", "errors": "2", "skipped": "2",
    }  # fmt: skip
    cases = suite.findall("testcase")
    kinds = [next((child.tag for child in case if child.tag != "system-out"), "") for case in cases]
    assert kinds == ["", "failure", "error", "error", "skipped", "", "", "skipped"]
    assert cases[0].findtext("system-out") == WILD.replace("\x1b", "").replace("\x07", "").replace(
        "\ufffe", ""
    )
    assert (cases[2].find("error").attrib) == {"message": "no such model", "type": "permanent"}  # type: ignore[union-attr]
    assert cases[0].get("time") == "1.500"


async def test_parquet_columns_are_typed(
    here: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numbers, times and lists of scores keep their types over several row groups."""
    monkeypatch.setattr("scoreline.reports.export_parquet.GROUP_ROWS", 3)
    await exported(here, tmp_path / "out.parquet")
    file = pq.ParquetFile(tmp_path / "out.parquet")
    assert (file.num_row_groups, file.metadata.num_rows) == (3, 8)
    first = file.read().to_pylist()[0]
    assert (first["score"], first["tokens"], first["passed"], first["bridged"]) == (1.0, 7, True, False)
    assert first["scores"][0] == {"evaluator": "exact", "score": 1.0, "passed": True, "reason": f"{WILD}!"}
    assert (first["output"], json.loads(first["input"])) == (WILD, {"q": 0})
    assert first["ended_at"].tzinfo is not None


async def test_an_existing_file_is_replaced_only_with_force(here: Harness, tmp_path: Path) -> None:
    """Without --force the export is rejected; a directory or a device is never replaced."""
    path = tmp_path / "out.csv"
    path.write_text("mine")
    ran = await here.run("export", "nightly", "-o", str(path))
    assert isinstance(ran.exception, CommandError)
    assert (str(ran.exception), path.read_text()) == (f"{path} exists. To replace it: --force", "mine")
    await exported(here, path, "--force")
    ran = await here.run("export", "nightly", "-o", str(tmp_path), "--format", "csv", "--force")
    assert "is a directory" in str(ran.exception)
    ran = await here.run("export", "nightly", "-o", "/dev/null", "--format", "csv", "--force")
    assert (ran.exit_code, contents(Path("/dev/null"))) == (0, b"")
    ran = await here.run("export", "nightly", "-o", str(tmp_path / "none" / "out.csv"))
    assert "can't be written: No such file or directory" in str(ran.exception)
    assert names(tmp_path) == ["out.csv"]


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "xml", "parquet"])
async def test_an_interrupted_export_leaves_no_file(
    here: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    """After an error during the export, neither the file nor its temporary file exists."""

    def fails(*_: object) -> None:
        raise psycopg.OperationalError("gone")

    monkeypatch.setattr(exporting, "make_record", fails)
    ran = await here.run("export", "nightly", "-o", str(tmp_path / f"out.{suffix}"))
    assert ran.exit_code == 1
    assert names(tmp_path) == []


async def test_exports_to_standard_output_and_json_summaries(here: Harness, tmp_path: Path) -> None:
    """`-o -` writes JSON lines to stdout; --json prints rows, format and bytes of the file."""
    ran = await here.run("export", "nightly", "-o", "-")
    assert len(ran.stdout.splitlines()) == len(WORDS)
    [summary] = await here.documents("export", "nightly", "-o", str(tmp_path / "out.jsonl"))
    assert (summary["rows"], summary["format"]) == (8, "jsonl")
    assert summary["bytes"] == (tmp_path / "out.jsonl").stat().st_size
    assert (await here.run("export", "nightly", "-o", "-", "--json")).exit_code == 2
    assert (await here.run("export", "nightly", "-o", "out.odd")).exit_code == 2
    assert (await here.run("export", "nightly", "-o", "out", "--format", "odd")).exit_code == 2
    assert "Parquet needs a file" in str(
        (await here.run("export", "nightly", "-o", "-", "--format", "parquet")).exception
    )


async def test_a_closed_pipe_is_no_error(here: Harness) -> None:
    """A reader that closes the pipe, like `| head -1`, ends the export with 0 and no traceback."""
    await here.submit("long", ["passed"] * 20, output="x" * 20_000)
    urls = {"EVAL_REDIS_URL": here.redis_url, "EVAL_POSTGRES_URL": here.place.url}
    with subprocess.Popen(  # noqa: ASYNC220 - nothing else runs here
        [SCORELINE, "batch", "export", "long", "-o", "-"],
        env=environment(**urls), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert (process.wait(30), process.stderr.read().count(b"Traceback")) == (0, 0)


async def test_an_external_batch_is_exported_from_its_events(here: Harness, tmp_path: Path) -> None:
    """Without a spec, case and input are read from the opening event."""
    await here.place.store(life(1))
    ran = await here.run("export", "batch-1", "-o", str(tmp_path / "out.jsonl"))
    assert ran.exit_code == 0, ran.exception
    [row] = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert (row["case_id"], row["input"], row["output"], row["target"]) == ("case-1", "2 + 2", "4", None)


async def test_case_values_keep_their_types(here: Harness, tmp_path: Path) -> None:
    """Numbers, lists, null and text that looks like JSON round-trip."""
    values: list[Any] = [0.1, [1, {"a": None}], None, "[1]", True, "-5", -5]
    cases = [p.Case(id=f"c{at}", input=value, expected=value) for at, value in enumerate(values)]
    await here.submit("typed", ["passed"] * len(values), cases=cases)
    await here.run("export", "typed", "-o", str(tmp_path / "out.jsonl"))
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["input"] for row in rows] == values
    await here.run("export", "typed", "-o", str(tmp_path / "out.csv"))
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        assert [row["expected"] for row in csv.DictReader(file)] == [
            "0.1", '[1, {"a": null}]', "", "[1]", "true", "'-5", "'-5",
        ]  # fmt: skip
