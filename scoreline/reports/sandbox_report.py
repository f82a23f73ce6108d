"""`scoreline sandbox check`: the privilege mode of sandboxes, and which isolation and limits hold in it."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict

import typer

from executor.sandbox.isolation_checks import IsolationCheck
from executor.sandbox.limit_checks import check_limits
from executor.sandbox.probe import ProbeResult, probe
from executor.sandbox.sandbox import Sandbox
from scoreline.command_error import CommandError

_NO_PYTHON = "The sandbox has no python3, so no check was run: install it in /usr, or check another host."


def report_sandbox(cgroup: str, *, as_json: bool, quick: bool) -> None:
    """Run every check and print the results; raises `CommandError` if one fails or there is no sandbox."""
    result, refusal = probe(), Sandbox(cgroup=cgroup).check()
    pending = _checks(result, cgroup, quick=quick or bool(refusal))
    checks = asyncio.run(_collect(result, pending, as_json=as_json))
    if as_json:
        typer.echo(json.dumps(_document(result, checks, refusal)))
    if refusal:
        raise CommandError(refusal)
    if not result.checks:
        raise CommandError(_NO_PYTHON)
    failed = [check.name for check in checks if not check.held]
    if failed:
        raise CommandError(
            f"{len(failed)} of {len(checks)} checks failed: {', '.join(failed)}. Run untrusted code on "
            "another host until they hold; docs/explanation/security.md names the mechanism behind each."
        )
    if not as_json:
        typer.echo("the check held" if len(checks) == 1 else f"all {len(checks)} checks held")


async def _collect(
    result: ProbeResult, pending: AsyncIterator[IsolationCheck], *, as_json: bool
) -> list[IsolationCheck]:
    """Run the checks, each printed as soon as it has ended."""
    if result.privilege_mode and not as_json:
        typer.echo(f"privilege mode: {result.privilege_mode.value}")
    checks = []
    async for check in pending:
        checks.append(check)
        if not as_json:
            typer.echo(_line(check))
    return checks


async def _checks(result: ProbeResult, cgroup: str, *, quick: bool) -> AsyncIterator[IsolationCheck]:
    for check in result.checks:
        yield check
    if result.privilege_mode and result.checks and not quick:
        async for check in check_limits(Sandbox(cgroup=cgroup), has_cgroup=bool(cgroup)):
            yield check


def _line(check: IsolationCheck) -> str:
    word = "held" if check.held else "OPEN"
    evidence = f": {check.evidence}" if check.evidence else ""
    return f"  {word}  {check.name:<17} {check.attempt} ({check.enforced_by}){evidence}"


def _document(result: ProbeResult, checks: list[IsolationCheck], refusal: str) -> dict[str, object]:
    return {
        "footing": result.privilege_mode and result.privilege_mode.value,
        "trouble": refusal,
        "held": bool(checks) and not refusal and all(check.held for check in checks),
        "checks": [{**asdict(check), "held": check.held} for check in checks],
    }
