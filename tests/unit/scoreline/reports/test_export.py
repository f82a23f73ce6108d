"""Exports of anything that a model may say are read back whole, and run nowhere."""

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
"""All that Postgres can hold."""


def record(said: str = "4", *, status: str = "completed", verdict: str | None = "failed") -> Record:
    judged = json.dumps([{"evaluator": "exact", "score": 0.0, "passed": False, "reason": said}])
    error = json.dumps({"kind": "permanent", "message": said})
    row = ExportRow(
        "e-1", said, 0, 1, status, verdict, 0.0, judged, said, json.dumps(said), json.dumps([said]), error,
        None, 1, 7, None, 1.5, 0, bridged=False, ended_at=START,
    )  # fmt: skip
    return make_record(row, [VariantLabel(0, said, said)])


@given(texts)
def test_json_lines_round_trip(said: str) -> None:
    """One line an object, whatever breaks of lines are in it."""
    file = io.BytesIO()
    with json_lines(file) as write:
        write(record(said))
        write(record(said))
    first, second = (json.loads(line) for line in file.getvalue().split(b"\n")[:-1])
    assert first == second
    assert (first["output"], first["input"], first["expected"], first["case_id"]) == (
        said,
        said,
        [said],
        said,
    )


@given(texts)
def test_csv_round_trips_but_for_the_apostrophe(said: str) -> None:
    """And no cell of text is a formula."""
    file = io.BytesIO()
    with csv_table(file) as write:
        write(record(said))
    [row] = csv.DictReader(io.StringIO(file.getvalue().decode(), newline=""))
    assert row["output"] in {said, f"'{said}"}
    assert not any(cell.lstrip().startswith(("=", "+", "-", "@")) for cell in row.values())


@pytest.mark.parametrize(
    "text", ["=1", "+1", "-1", "@a", "\ta", "\ra", "  =1", "\n=1", "\uff1d1", "\u00a0=1"]
)
def test_formulas_are_made_text(text: str) -> None:
    """Also after spaces, and in wide letters."""
    assert safe_cell(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "a=1", "1-2", "'=1", " a"])
def test_what_is_no_formula_stays_as_it_is(text: str) -> None:
    """Data is not altered without need."""
    assert safe_cell(text) == text


@given(
    texts,
    st.sampled_from([("completed", "failed"), ("failed", None), ("cancelled", None), ("running", None)]),
)
def test_junit_is_well_formed_whatever_was_said(said: str, ending: tuple[str, str | None]) -> None:
    """In names, messages, attributes and outputs alike; what XML can have comes back."""
    file = io.BytesIO()
    with junit(file, name=said, endings={("completed", "failed"): 1}) as write:
        write(record(said, status=ending[0], verdict=ending[1]))
    suite = ET.fromstring(file.getvalue()).find("testsuite")
    assert suite is not None
    kept = "".join(c for c in said if c in "\t\n\r" or (c >= " " and c not in "\ufffe\uffff"))
    assert (suite.get("name"), suite.findtext("testcase/system-out")) == (kept, kept)


def test_junit_that_breaks_off_does_not_look_whole() -> None:
    """Half a report must not pass for a good one."""
    file = io.BytesIO()
    with pytest.raises(OSError, match="gone"), junit(file, name="n", endings={}):
        raise OSError("gone")
    with pytest.raises(ET.ParseError):
        ET.fromstring(file.getvalue())


def test_record_of_an_unknown_variant_has_no_label() -> None:
    """As in a batch that nobody submitted."""
    row = ExportRow(
        "e", "c", 3, 1, "queued", None, None, None, None, None, None, None, None, 1, None, None, None, None,
        bridged=False, ended_at=None,
    )  # fmt: skip
    made = make_record(row, [])
    assert (made.target, made.prompt, made.scores, made.error, made.passed) == (None, None, (), None, None)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ([("a", False, "wrong"), ("b", True, "fine"), ("c", None, "long")], "a: wrong"),
        ([("a", False, ""), ("b", True, "fine")], "b: fine"),
        ([("a", True, "fine"), ("b", None, "long")], "a: fine; b: long"),
        ([("a", False, "wrong"), ("b", False, "worse")], "a: wrong; b: worse"),
        ([], ""),
    ],
)
def test_reason_is_that_of_the_evaluators_that_failed_the_answer(
    said: list[tuple[str, bool | None, str]], reason: str
) -> None:
    """Reasons of the others stand in only where none of those that failed it gave one."""
    scores = json.dumps(
        [{"evaluator": name, "score": 0.5, "passed": passed, "reason": why} for name, passed, why in said]
    )
    row = ExportRow(
        "e-1", "c", 0, 1, "completed", "failed", 0.5, scores, "x", None, None, None,
        None, 1, 7, None, 1.5, 0, bridged=False, ended_at=START,
    )  # fmt: skip
    assert make_record(row, []).reason == reason
