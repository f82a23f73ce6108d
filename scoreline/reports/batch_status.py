"""The status of a batch as one word, one exit code and one JSON object. Pure."""

from datetime import timedelta
from enum import IntEnum
from typing import Any

from coordinator.budget import over
from projections.queries.batches import BatchSnapshot
from scoreline.reports.pass_rate import batch_pass_rate

STATUSES = ("running", "paused", "completed", "cancelled", "expired", "external")
STOPPED = frozenset({"paused", "cancelled", "expired"})
STARTING = timedelta(seconds=15)
"""How long the processes of a local run may take to start."""


class ExitCode(IntEnum):
    """The exit codes of commands about a batch."""

    FINISHED = 0
    DEAD_LETTERS = 3
    STOPPED = 4
    OVER_BUDGET = 5
    """Completed, and its spend exceeds its budget."""
    BELOW_GATE = 100
    """Over, and its pass rate is below `--min-pass-rate`."""


def status_word(snapshot: BatchSnapshot) -> str:
    """Return the status of a batch in one word; `completed` only once it is over."""
    if snapshot.kind == "external":
        return "external"
    if snapshot.state in {"running", "completed"}:
        return "running" if snapshot.finished_at is None else "completed"
    return snapshot.state


def is_over(snapshot: BatchSnapshot) -> bool:
    """Whether no more evaluations run without a command; an external batch is over by its counters."""
    if snapshot.kind == "external":
        return snapshot.progress.total > 0 and snapshot.progress.pending == 0
    return snapshot.state == "paused" or snapshot.finished_at is not None


def exit_code(snapshot: BatchSnapshot) -> ExitCode:
    """Return the exit code for a batch; 0 while it runs."""
    if status_word(snapshot) in STOPPED:
        return ExitCode.STOPPED
    if is_over(snapshot) and snapshot.progress.dead_letters:
        return ExitCode.DEAD_LETTERS
    if is_over(snapshot) and any(over(snapshot.budget)):
        return ExitCode.OVER_BUDGET
    return ExitCode.FINISHED


def gated_exit_code(snapshot: BatchSnapshot, min_pass_rate: float | None) -> ExitCode:
    """Return the exit code of a run with a gate, which applies to a batch that ran to its end."""
    code = exit_code(snapshot)
    if min_pass_rate is None or not is_over(snapshot) or code is ExitCode.STOPPED:
        return code
    rate = batch_pass_rate(snapshot).value
    return ExitCode.BELOW_GATE if rate is None or rate < min_pass_rate else code


def document(snapshot: BatchSnapshot) -> dict[str, Any]:
    """Return a batch as JSON: first the keys that every command has, then more."""
    progress, budget = snapshot.progress, snapshot.budget
    return {
        "batch_id": snapshot.batch_id,
        "status": status_word(snapshot),
        "total": progress.total,
        "completed": progress.completed,
        "passed": progress.passed,
        "failed": progress.failed,
        "timed_out": progress.timed_out,
        "cancelled": progress.cancelled,
        "pending": progress.pending,
        "retried": progress.retried,
        "bridged": progress.bridged,
        "score": progress.score,
        "duration_s": round(snapshot.duration.total_seconds(), 3),
        "tokens": progress.tokens,
        "cost_usd": float(progress.cost_usd),
        "max_cost_usd": None if budget.max_cost_usd is None else float(budget.max_cost_usd),
        "max_tokens": budget.max_tokens,
        "spent_usd": float(budget.spent_usd),
        "spent_tokens": budget.spent_tokens,
        "unrecorded_usd": float(budget.unrecorded_usd),
        "unrecorded_tokens": budget.unrecorded_tokens,
        "over_budget": any(over(budget)),
        "over_budget_usd": float(over(budget)[0]),
        "over_budget_tokens": over(budget)[1],
        "name": snapshot.name,
        "project": snapshot.project,
        "dataset": snapshot.dataset,
        "reason": snapshot.reason,
        "dead_letters": progress.dead_letters,
        "pass_rate": batch_pass_rate(snapshot).value,
    }
