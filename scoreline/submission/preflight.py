"""Checks of a plan before anything starts or is submitted."""

from collections.abc import Iterator

from rich.console import Console

from scoreline.spec.plan import Plan
from scoreline.spec.simulation import name_simulated


def preflight(plan: Plan, console: Console) -> None:
    """Print what the user should know of a plan before it runs."""
    for note in _notes(plan):
        console.print(note, markup=False, highlight=False)


def _notes(plan: Plan) -> Iterator[str]:
    if plan.is_simulated:
        replaced = name_simulated(plan.batch.targets, plan.batch.evaluators)
        what = ", ".join(replaced) or "answers are made up"
        yield f"--mode simulated, nothing is called: {what}"
