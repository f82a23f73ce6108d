"""Exports of arbitrary model output round-trip, and no spreadsheet runs them as formulas."""

import csv
import io
import json

import pytest
from hypothesis import given

from scoreline.reports.export_writers import csv_table, json_lines, safe_cell
from tests.unit.scoreline.reports.export_rows import record, texts


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
