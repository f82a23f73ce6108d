"""Exports of arbitrary model output round-trip, and no spreadsheet runs them as formulas."""

import csv
import io
import json
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.queries.export import ExportRow
from scoreline.reports.export_junit import junit
from scoreline.reports.export_record import Record, make_record
from scoreline.reports.export_writers import csv_table, json_lines, safe_cell
from scoreline.reports.labels import VariantLabel
from tests.builders import START

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
"""Every text that Postgres can store."""


def record(text: str = "4", *, status: str = "completed", verdict: str | None = "failed") -> Record:
    judged = json.dumps([{"evaluator": "exact", "score": 0.0, "passed": False, "reason": text}])
    error = json.dumps({"kind": "permanent", "message": text})
    row = ExportRow(
        "e-1", text, 0, 1, status, verdict, 0.0, judged, text, json.dumps(text), json.dumps([text]), error,
        None, 1, 7, None, 1.5, 0, bridged=False, ended_at=START,
    )  # fmt: skip
    return make_record(row, [VariantLabel(0, text, text)])


@given(texts)
def test_json_lines_round_trip(text: str) -> None:
    """Each record is one line, whatever line breaks its values contain."""
    file = io.BytesIO()
    with json_lines(file) as write:
        write(record(text))
        write(record(text))
    first, second = (json.loads(line) for line in file.getvalue().split(b"\n")[:-1])
    assert first == second
    assert (first["output"], first["input"], first["expected"], first["case_id"]) == (
        text,
        text,
        [text],
        text,
    )


@given(texts)
def test_csv_round_trips_but_for_the_apostrophe(text: str) -> None:
    """No text cell is a formula, and all other text is unchanged."""
    file = io.BytesIO()
    with csv_table(file) as write:
        write(record(text))
    [row] = csv.DictReader(io.StringIO(file.getvalue().decode(), newline=""))
    assert row["output"] in {text, f"'{text}"}
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row.values())


@pytest.mark.parametrize(
    "text", ["=1", "+1", "-1", "@a", "\ta", "\ra", "  =1", "\n=1", "\uff1d1", "\u00a0=1"]
)
def test_formulas_are_made_text(text: str) -> None:
    """Formulas after spaces, and in full-width characters, are prefixed with an apostrophe."""
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=1", "1-2", "'=1", " a"])
def test_text_that_is_no_formula_is_unchanged(text: str) -> None:
    """Text that a spreadsheet does not run gets no apostrophe."""
    assert safe_cell(text) == text


@given(
    texts,
    st.sampled_from([("completed", "failed"), ("failed", None), ("cancelled", None), ("running", None)]),
)
def test_junit_is_well_formed_for_any_text(text: str, ending: tuple[str, str | None]) -> None:
    """Names, messages, attributes and outputs with any text parse, and allowed characters round-trip."""
    file = io.BytesIO()
    with junit(file, name=text, endings={("completed", "failed"): 1}) as write:
        write(record(text, status=ending[0], verdict=ending[1]))
    suite = ET.fromstring(file.getvalue()).find("testsuite")
    assert suite is not None
    kept = "".join(c for c in text if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff"))
    assert (suite.get("name"), suite.findtext("testcase/system-out")) == (kept, kept)


def test_an_interrupted_junit_export_does_not_parse() -> None:
    """A truncated file is invalid XML, so it is not read as a complete report."""
    file = io.BytesIO()
    with pytest.raises(OSError, match="gone"), junit(file, name="n", endings={}):
        raise OSError("gone")
    with pytest.raises(ET.ParseError):
        ET.fromstring(file.getvalue())


def test_record_of_an_unknown_variant_has_no_label() -> None:
    """A record of an external batch has no target, prompt or scores."""
    row = ExportRow(
        "e", "c", 3, 1, "queued", None, None, None, None, None, None, None, None, 1, None, None, None, None,
        bridged=False, ended_at=None,
    )  # fmt: skip
    made = make_record(row, [])
    assert (made.target, made.prompt, made.scores, made.error, made.passed) == (
        None,
        None,
        (),
        None,
        None,
    )


@pytest.mark.parametrize(
    ("judgements", "reason"),
    [
        ([("a", False, "wrong"), ("b", True, "fine"), ("c", None, "long")], "a: wrong"),
        ([("a", False, ""), ("b", True, "fine")], "b: fine"),
        ([("a", True, "fine"), ("b", None, "long")], "a: fine; b: long"),
        ([("a", False, "wrong"), ("b", False, "worse")], "a: wrong; b: worse"),
        ([], ""),
    ],
)
def test_reason_is_that_of_the_evaluators_that_failed_the_answer(
    judgements: list[tuple[str, bool | None, str]], reason: str
) -> None:
    """Reasons of other evaluators are used only where none that failed the answer gave one."""
    scores = json.dumps(
        [
            {"evaluator": name, "score": 0.5, "passed": passed, "reason": why}
            for name, passed, why in judgements
        ]
    )
    row = ExportRow(
        "e-1", "c", 0, 1, "completed", "failed", 0.5, scores, "x", None, None, None,
        None, 1, 7, None, 1.5, 0, bridged=False, ended_at=START,
    )  # fmt: skip
    assert make_record(row, []).reason == reason
