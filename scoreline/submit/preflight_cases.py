"""Preflight of a batch's data: prompts, and whether evaluators can use the first cases of a file."""

import re
from collections.abc import Iterator
from itertools import islice

from domain.batch_spec import EvaluatorSpec
from domain.template import placeholders
from executor.contract import CallFault, ExecutionEnvironment, Permanent, ScoringRequest
from executor.registry import evaluator_type, make_evaluator
from scoreline.command_error import CommandError
from scoreline.submit.case_requirements import fields_of
from scoreline.submit.datasets.cases import DatasetRow
from scoreline.submit.datasets.rows import file_rows
from scoreline.submit.datasets.sources import FileSource
from scoreline.submit.preflight_finding import PreflightFinding
from scoreline.submit.spec.plan import Plan
from scoreline.submit.spec.simulation import IN_PROCESS_EVALUATORS

FIRST_ROWS = 20
_DOUBLED = re.compile(r"\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}")
_NO_EXPECTED = "no_expected"
_EXPECTED = frozenset({_NO_EXPECTED, "bad_expected"})
"""Faults of an evaluator that can't use a case's expected value, whatever the answer."""


def check_prompts(plan: Plan) -> Iterator[PreflightFinding]:
    """Warn of prompts that ask every case the same."""
    if all(target.type == "recorded" for target in plan.spec.targets):
        return
    for prompt in plan.spec.prompts:
        shown = prompt if len(prompt) <= 60 else f"{prompt[:59]}…"
        if doubled := _DOUBLED.search(prompt):
            name = doubled[1]
            text = f"the prompt {shown!r} has {{{{{name}}}}}, which is not filled in: write {{{name}}}"
            yield PreflightFinding(text, is_fatal=False)
        elif not placeholders(prompt):
            text = (
                f"the prompt {shown!r} has no placeholder, so every case is asked the same: write {{input}}"
            )
            yield PreflightFinding(text, is_fatal=False)


async def check_cases(plan: Plan) -> list[PreflightFinding]:
    """Read the first cases of a file, and have each evaluator that compares try their expected values."""
    if not isinstance(plan.source, FileSource):
        return []
    first = min(FIRST_ROWS, plan.limit or FIRST_ROWS)  # submission reads as many rows, or more
    try:
        rows = list(islice(file_rows(plan.source.path, plan.source.columns), first))
    except CommandError as error:
        return [PreflightFinding(str(error), is_avoidable=False)]
    judges = [each for each in plan.spec.evaluators if each.type in IN_PROCESS_EVALUATORS]
    return [finding for each in judges for finding in await _unusable(plan, each, rows)]


async def _unusable(plan: Plan, spec: EvaluatorSpec, rows: list[DatasetRow]) -> list[PreflightFinding]:
    evaluator = make_evaluator(spec, ExecutionEnvironment())
    faults: list[tuple[DatasetRow, CallFault]] = []
    for row in rows:
        try:
            await evaluator.score(ScoringRequest(row.case, "", {**fields_of(row.case), "output": ""}))
        except Permanent as fault:
            if fault.kind in _EXPECTED:
                faults.append((row, fault))
    if not faults:
        return []
    row, first = faults[0]
    assert isinstance(plan.source, FileSource)  # noqa: S101 - `check_cases` reads no other
    are_all = len(faults) == len(rows)
    many = "none of" if are_all else f"only {len(rows) - len(faults)} of"
    text = f"the evaluator {spec.name!r} can use the expected value of {many} the first {len(rows)} cases"
    where = f"{plan.source.path}, line {row.line}"
    # Submission refuses a case that lacks what its evaluator needs; a value of a wrong kind passes it.
    is_refused = evaluator_type(spec.type).needs_expected and first.kind == _NO_EXPECTED
    return [
        PreflightFinding(f"{where}: {text}: {first.message}", is_fatal=are_all, is_avoidable=not is_refused)
    ]
