"""Flags of `scoreline replay`: of one evaluation, or of batches, and never of both."""

import pytest
import typer
from typer.testing import CliRunner

from scoreline.cli.main import app
from scoreline.cli.replay import HistoryOptions, LogCheckOptions
from scoreline.reports.replay.origin import Origin


def refused(*argv: str) -> str:
    """Run a replay that is refused; returns its output on one line."""
    ran = CliRunner().invoke(app, ["replay", *argv], env={"COLUMNS": "200"})
    assert ran.exit_code == 2, ran.output
    return " ".join(ran.output.split())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (HistoryOptions(other="@2", at="4"), "--diff and --at"),
        (HistoryOptions(other="@2", full=True), "--diff and --full"),
        (HistoryOptions(follow=True, attempt=1), "--follow and --attempt"),
    ],
)
def test_flags_that_exclude_each_other_are_refused(options: HistoryOptions, text: str):
    """Both are named."""
    with pytest.raises(typer.BadParameter, match=f"{text} do not go together"):
        options.refuse_together()


def test_flags_that_go_together_are_accepted():
    """A past state of one attempt, shown in full."""
    HistoryOptions(at="4", attempt=1, full=True).refuse_together()
    HistoryOptions().refuse_for_batches(None)


@pytest.mark.parametrize(
    ("options", "evaluation", "flag"),
    [
        (HistoryOptions(), "e-1", "an EVALUATION"),
        (HistoryOptions(origin=Origin.REDIS), None, "--from"),
        (HistoryOptions(follow=True), None, "--follow"),
        (HistoryOptions(attempt=1), None, "--attempt"),
    ],
)
def test_a_command_about_batches_takes_no_flag_of_one_evaluation(
    options: HistoryOptions, evaluation: str | None, flag: str
):
    """The default source is no choice."""
    with pytest.raises(typer.BadParameter, match=f"^{flag} does not go with --batch"):
        options.refuse_for_batches(evaluation)


def test_the_summary_is_the_default_of_a_batch():
    """Without a batch nothing is chosen: the command is about one evaluation."""
    assert LogCheckOptions().modes == []
    assert LogCheckOptions(batch="nightly").modes == ["summary"]
    assert LogCheckOptions(batch="nightly", verify=True).modes == ["verify"]
    assert LogCheckOptions(verify=True, rebuild=True).modes == ["verify", "rebuild"]


@pytest.mark.parametrize(
    ("argv", "text"),
    [
        ([], "which evaluation? Give its id: scoreline replay ID"),
        (["--summary"], "which batch? Give its id: scoreline replay --batch ID --summary"),
        (
            ["--verify", "--since", "soon"],
            "'soon' is no time: give an age like 15m, 2h or 3d, or a time like",
        ),
        (["--rebuild", "--since", "1h"], "--since goes with --verify"),
        (["e-1", "--since", "1h"], "--since goes with --verify"),
        (["--verify", "--rebuild"], "--verify and --rebuild do not go together"),
        (["e-1", "--at", "soon"], "'soon' is no moment: give a number of entries, a time like 09:30:00.5"),
    ],
)
def test_an_incomplete_command_is_refused_with_what_to_type(argv: list[str], text: str):
    """Before any server is used."""
    assert text in refused(*argv)
