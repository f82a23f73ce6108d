"""Plans over small files, and the evaluations made from them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from coordinator.submission import NewEvaluation
from scoreline.command_error import CommandError
from scoreline.submit.evaluations import evaluations
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.plan import Plan


def wrote(folder: Path, name: str, rows: Sequence[Mapping[str, object]]) -> Path:
    """Write rows as JSONL."""
    path = folder / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def plan_of(folder: Path, rows: Sequence[Mapping[str, object]], **flags: object) -> Plan:
    """Plan a batch over some rows; by default simulated and without evaluators."""
    wrote(folder, "cases.jsonl", rows)
    return make_plan(None, {"dataset": "cases.jsonl", "target": "simulated", **flags}, folder=folder)


async def submitted(plan: Plan) -> list[NewEvaluation]:
    """Make all evaluations of a plan."""
    return [evaluation async for evaluation in evaluations(plan)]


async def refused(plan: Plan) -> str:
    """Return the reason why a plan's evaluations can't be made."""
    with pytest.raises(CommandError) as caught:
        await submitted(plan)
    return str(caught.value)


TWO = [{"id": "a", "input": "x", "expected": "1"}, {"id": "b", "input": "y", "expected": "2"}]
