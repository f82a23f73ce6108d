"""Files that are made to exhaust memory, through the installed command: refused in one line, in 200 MB."""

import asyncio
import gzip
import json
import os
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder
from tests.acceptance.peak_memory import measured

MAX_KILOBYTES = 200 * 1024
MEGABYTE = 1024 * 1024
HONEST_MEGABYTES = int(os.environ.get("EVAL_TEST_IMPORT_MB", "40"))
"""Size of the honest file; 300 by hand."""


def bomb(beginning: bytes, body: bytes, times: int) -> bytes:
    """Pack a text that repeats itself, member by member: a gigabyte takes no time to write."""
    return gzip.compress(beginning) + gzip.compress(body) * times


ROW = b'{"input": "%s"}\n' % (b"x" * 400_000)
HOSTILE: dict[str, tuple[bytes, str]] = {
    "deep.json": (b"[" * 50_000, "deep.json, record 1: lists and objects are nested more than 100 deep"),
    "scalar.yaml.gz": (bomb(b"- input: ", b"x" * 10 * MEGABYTE, 300), "one value is longer than 2 MB"),
    "key.json": (b'[{"' + b"k" * 20 * MEGABYTE, "one value is longer than 2 MB, before byte"),
    "laughs.yaml": (b"- input: &a [x, x]\n- input: [*a, *a]\n", "record 2: aliases (*name) are not read"),
    "quoted.csv": (b"input\n" + b'"x\n",' * MEGABYTE, "line 2: the row is longer than 2 MB"),
    "levels.jsonl": (
        b'{"input": [' + (b"[" * 90 + b"]" * 90 + b",") * 11_000 + b"1]}",
        "line 1: the case takes",
    ),
    "rows.jsonl.gz": (bomb(b"", ROW, 20_000), "unpack the file first (gunzip)"),
}
"""By the name of a file: its bytes, and a part of the error."""


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    return Folder(tmp_path, redis_url, postgres_url)


async def test_hostile_files_are_refused_in_bounded_memory(folder: Folder) -> None:
    """Each file ends in one line with its place and the limit, below 200 MB, and leaves nothing behind."""
    for name, (body, _) in HOSTILE.items():
        (folder.root / name).write_bytes(body)
    for name, (_, reason) in HOSTILE.items():
        code, kilobytes, printed = await asyncio.to_thread(measured, folder, "dataset", "import", name)
        assert (code, kilobytes < MAX_KILOBYTES) == (1, True), (name, kilobytes, printed)
        assert reason in printed, name
        assert name in printed
        assert len(printed.splitlines()) == 1, name
    assert folder.ask("SELECT count(*) FROM datasets") == [(0,)]
    assert folder.ask("SELECT count(*) FROM test_cases") == [(0,)]


async def test_hostile_specs_and_batches_are_refused_in_bounded_memory(folder: Folder) -> None:
    """A spec has its own limits, a batch reads its files under the same ones; no batch is left behind."""
    folder.write("values.yaml", "name: [" + "[], " * MEGABYTE + "]")
    folder.write("long.yaml", "prompts:\n" + f"- {'x' * MEGABYTE}\n" * 20)
    (folder.root / "deep.json").write_bytes(HOSTILE["deep.json"][0])
    for arguments, reason in (
        (("-c", "values.yaml"), "values.yaml: there are more than 50,000 values"),
        (("-c", "long.yaml"), "long.yaml: the file is longer than 4 MB"),
        (("--dataset", "deep.json", "--target", "simulated"), "record 1: lists and objects are nested"),
    ):
        code, kilobytes, printed = await asyncio.to_thread(measured, folder, "batch", "run", *arguments)
        assert (code != 0, kilobytes < MAX_KILOBYTES) == (True, True), (arguments, kilobytes, printed)
        assert reason in printed
    assert folder.ask("SELECT count(*) FROM batches") == [(0,)]


async def test_honest_file_is_imported_in_flat_memory(folder: Folder) -> None:
    """A large file of rows with ids of their own is imported whole, below 200 MB."""
    rows = HONEST_MEGABYTES * MEGABYTE // 2_000
    with (folder.root / "honest.jsonl").open("w") as file:
        for number in range(rows):
            row = {"id": f"case-{number}", "input": f"{number} {'abcdefghij ' * 178}", "expected": "x"}
            file.write(json.dumps(row) + "\n")
    code, kilobytes, printed = await asyncio.to_thread(
        measured, folder, "dataset", "import", "honest.jsonl"
    )
    assert (code, kilobytes < MAX_KILOBYTES) == (0, True), (kilobytes, printed)
    assert folder.ask("SELECT cases FROM datasets") == [(rows,)]
    print(f"{HONEST_MEGABYTES} MB, {rows:,} cases: {kilobytes / 1024:.0f} MB at most")
