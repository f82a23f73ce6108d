"""Checks of a plan before any server starts and anything is submitted: all that is wrong, at once.

    functions   imported under the interpreter that will run them, in a process that calls none
    programs    looked up; files for them exist; the sandbox works
    models      the key is set; host names, of HTTP targets too, are resolved
    cases       the file and its first rows can be read; evaluators can use their expected values
    prompts     a placeholder is there, and is not written {{input}}

What may differ where the batch runs is a warning with `--distributed`: executors have their own keys,
programs and modules.
"""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rich.console import Console

from scoreline.command_error import CommandError
from scoreline.submit.interpreter import submitters_interpreter
from scoreline.submit.preflight_calls import check_calls
from scoreline.submit.preflight_cases import check_cases, check_prompts
from scoreline.submit.preflight_finding import PreflightFinding
from scoreline.submit.spec.plan import Plan
from scoreline.submit.spec.simulation import name_simulated

AROUND = "To submit anyway: --no-preflight"


@dataclass(frozen=True, slots=True)
class Preflight:
    """What a preflight goes by."""

    distributed: bool
    is_wanted: bool
    allow_unsandboxed: bool


def preflight(plan: Plan, console: Console, wanted: Preflight) -> Plan:
    """Complete a plan with what is known only here, print warnings, and refuse what can't run.

    Executors elsewhere have an interpreter of their own: a path of this machine means nothing to them.
    """
    if not wanted.distributed:
        interpreter = submitters_interpreter(os.environ)
        plan = plan.with_spec(replace(plan.spec, interpreter=interpreter))
    for note in _notes(plan):
        console.print(note, markup=False, highlight=False, soft_wrap=True)
    if wanted.is_wanted:
        _report(_findings(plan, wanted), console)
    return plan


def _findings(plan: Plan, wanted: Preflight) -> Iterator[PreflightFinding]:
    yield from asyncio.run(check_cases(plan))
    yield from check_prompts(plan)
    for finding in check_calls(plan.spec, os.environ, unsandboxed=wanted.allow_unsandboxed):
        yield replace(finding, is_fatal=finding.is_fatal and not wanted.distributed)


def _report(findings: Iterator[PreflightFinding], console: Console) -> None:
    """Print the warnings; raise `CommandError` with everything that is fatal."""
    fatal = []
    for finding in findings:
        if finding.is_fatal:
            fatal.append(finding)
        else:
            console.print(f"warning: {finding.text}", markup=False, highlight=False, soft_wrap=True)
    if fatal:
        raise CommandError(_refusal(fatal))


def _refusal(fatal: list[PreflightFinding]) -> str:
    """List what is fatal; offer `--no-preflight` only where submission accepts the batch then."""
    around = AROUND if all(finding.is_avoidable for finding in fatal) else ""
    if len(fatal) == 1:
        return f"{fatal[0].text}\nNothing was submitted. {around}".rstrip()
    listed = "\n".join(f"  - {finding.text}" for finding in fatal)
    return f"{len(fatal)} problems, nothing was submitted:\n{listed}\n{around}".rstrip()


def _notes(plan: Plan) -> Iterator[str]:
    if plan.is_simulated:
        replaced = name_simulated(plan.spec.targets, plan.spec.evaluators)
        what = ", ".join(replaced) or "answers are made up"
        yield f"--mode simulated, nothing is called: {what}"
