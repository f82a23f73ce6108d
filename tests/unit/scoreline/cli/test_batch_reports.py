"""Flags of reports about batches: combinations that make no sense are refused before any server is used."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from scoreline.cli.batch import app
from scoreline.cli.batch_reports import CompareOptions, ExportOptions
from scoreline.reports.compare import Gate
from scoreline.reports.export import Format


@pytest.mark.parametrize(
    ("options", "form"),
    [
        (ExportOptions(output=Path("r.CSV")), Format.CSV),
        (ExportOptions(output=Path("r.xml")), Format.JUNIT),
        (ExportOptions(output=Path("-")), Format.JSONL),
        (ExportOptions(output=Path("r.txt"), form="json"), Format.JSON),
    ],
)
def test_the_format_of_an_export_is_given_or_follows_from_the_suffix(options: ExportOptions, form: Format):
    """Standard output gets JSON lines."""
    assert options.request("nightly").format is form


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (ExportOptions(output=Path("r.txt")), "the name 'r.txt' has no known suffix; give one of "),
        (ExportOptions(output=Path("r.csv"), form="pdf"), "'pdf' is none of "),
        (ExportOptions(output=Path("-"), as_json=True), "both want standard output"),
    ],
)
def test_an_export_without_a_place_or_a_format_is_refused(options: ExportOptions, text: str):
    """The error names the flag or lists the formats."""
    with pytest.raises(typer.BadParameter) as refusal:
        options.request("nightly")
    assert text in str(refusal.value)


def test_a_gate_on_regressions_is_opened_by_its_flag():
    """`--significant` alone would check nothing."""
    assert CompareOptions().gate() is Gate.NONE
    assert CompareOptions(fail_on_regression=True).gate() is Gate.ANY
    assert CompareOptions(fail_on_regression=True, significant=True).gate() is Gate.SIGNIFICANT
    with pytest.raises(typer.BadParameter, match="goes with --fail-on-regression"):
        CompareOptions(significant=True).gate()


def test_an_unknown_status_is_refused_with_those_that_exist():
    """Before a server is started for the list."""
    ran = CliRunner().invoke(app, ["list", "--status", "done"], env={"COLUMNS": "200"})
    assert ran.exit_code == 2
    assert "'done' is none of running, paused, completed" in ran.output
