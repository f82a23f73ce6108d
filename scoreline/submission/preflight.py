"""Checks of a plan before anything starts or is submitted."""

import os
from collections.abc import Iterator
from dataclasses import replace

from rich.console import Console

from scoreline.spec.plan import Plan
from scoreline.spec.simulation import name_simulated
from scoreline.submission.interpreter import submitters_interpreter


def preflight(plan: Plan, console: Console, *, distributed: bool) -> Plan:
    """Complete a plan with what is known only here, and print what the user should know before it runs.

    Executors elsewhere have an interpreter of their own: a path of this machine means nothing to them.
    """
    if not distributed:
        plan = replace(plan, batch=replace(plan.batch, interpreter=submitters_interpreter(os.environ)))
    for note in _notes(plan):
        console.print(note, markup=False, highlight=False)
    return plan


def _notes(plan: Plan) -> Iterator[str]:
    if plan.is_simulated:
        replaced = name_simulated(plan.batch.targets, plan.batch.evaluators)
        what = ", ".join(replaced) or "answers are made up"
        yield f"--mode simulated, nothing is called: {what}"
