"""The report of the demo: scorecards, failures, the replay of a retried evaluation, the verification."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from scoreline.formatting import counted, excerpt
from scoreline.invocation import batch_command, typed
from scoreline.local.demo.outcome import Outcome, TargetResult, complaints
from scoreline.reports.audit.verified import Finding
from scoreline.reports.audit.verified import show as show_verified
from scoreline.reports.export_record import Record
from scoreline.reports.pass_rate import PassRate
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.timeline_text import show as show_story

REASON_SHOWN = 90


def show(console: Console, outcome: Outcome, history: EvaluationHistory | None) -> None:
    """Print the report; `history` is an evaluation that the killed executor had claimed."""
    _head(console, "Scorecards")
    console.print(_scorecards(outcome.targets))
    _head(console, "Some that failed")
    console.print(_failures(outcome.failed))
    _show_death(console, outcome, history)
    batch_id = outcome.snapshot.batch_id
    _head(console, f"$ {typed('replay', '--batch', batch_id, '--verify')}")
    show_verified(console, Finding(outcome.verified, outcome.verified_in, []))
    _head(console, "Go on")
    for words in next_steps(outcome):
        _print(console, words)
    _show_end(console, outcome)


def _head(console: Console, words: str) -> None:
    console.print()
    console.print(Text(words, style="bold"), soft_wrap=True)


def _print(console: Console, words: str, style: str = "") -> None:
    console.print(Text(words, style=style), soft_wrap=True)


def _table(*columns: str, right: Sequence[str] = ()) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left", overflow="fold")
    return table


def _scorecards(targets: Sequence[TargetResult]) -> Table:
    table = _table(
        "target", "passed", "pass rate", "published", "same verdict",
        right=("passed", "pass rate", "published", "same verdict"),
    )  # fmt: skip
    for each in targets:
        rate = str(PassRate(each.passed, each.total, each.total))
        same = f"{each.total - each.differing} of {each.total}"
        published = f"{each.published} of {each.total}"
        table.add_row(each.target, f"{each.passed} of {each.total}", rate, published, same)
    return table


def _failures(failed: Sequence[Record]) -> Table:
    table = _table("question", "target", "why", right=("question",))
    for record in failed:
        table.add_row(record.case_id, record.target or "", Text(excerpt(record.reason, REASON_SHOWN)))
    return table


def _show_death(console: Console, outcome: Outcome, history: EvaluationHistory | None) -> None:
    killed = outcome.killed
    if killed is None:
        _head(console, "No executor was killed")
        _print(console, "All evaluations had ended before an executor was found with claimed tasks.")
        return
    _head(console, f"Retries of what {killed.executor} had claimed")
    _print(
        console,
        f"It had claimed {counted(len(killed.claimed), 'evaluation')}. "
        f"{counted(outcome.again, 'evaluation')} were retried, as attempt 2.",
    )
    if history:
        _head(console, f"$ {typed('replay', history.evaluation_id, '--from', 'postgres')}")
        show_story(console, history)


def next_steps(outcome: Outcome) -> list[str]:
    """List the commands that a person may type next."""
    batch_id = outcome.snapshot.batch_id
    one = outcome.killed.claimed[0] if outcome.killed else outcome.failed[0].evaluation_id
    return [
        batch_command("status", batch_id),
        batch_command("dlq", batch_id),
        batch_command("export", batch_id, "-o", "results.csv"),
        typed("replay", one),
        typed("replay", "--batch", batch_id),
        f"{typed('demo')}, then: {batch_command('compare', batch_id)} ITS_ID",
    ]


def _show_end(console: Console, outcome: Outcome) -> None:
    console.print()
    problems = list(complaints(outcome))
    for problem in problems:
        _print(console, f"✗ {problem}", "bold red")
    if not problems:
        progress, published = outcome.snapshot.progress, "as many as the authors found right"
        took = f"{outcome.seconds:.0f} s"
        words = f"✓ {progress.passed} of {progress.total} passed, {published}; nothing lost, in {took}"
        _print(console, words, "bold green")
