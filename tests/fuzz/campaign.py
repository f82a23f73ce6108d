"""One target under fuzzing: inputs until time or number is up, the slowest, and what failed, reduced."""

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz.target import FuzzTarget

REGRESSIONS = Path(__file__).with_name("regressions")
ROUND = 300
"""Inputs of one seed."""


class FuzzFailure(Exception):  # noqa: N818 - what the input is
    """An input that ended in no documented way, or took too long."""


@dataclass(slots=True)
class FuzzOutcome:
    """What fuzzing a target came to."""

    target: str
    examples: int = 0
    slowest: float = 0.0
    """Seconds of CPU time."""
    peak_mb: int = 0
    """Of the whole process, with the interpreter and all imports."""
    failure: str = ""

    def as_dict(self) -> dict[str, object]:
        """Lay it out for machines."""
        return asdict(self)


def regressions_of(target: FuzzTarget) -> Iterator[Path]:
    """List the inputs that failed once."""
    return iter(sorted((REGRESSIONS / target.name.replace(" ", "-")).glob("*")))


def run_one(target: FuzzTarget, body: bytes, outcome: FuzzOutcome) -> None:
    """Exercise a target with one input; raises `FuzzFailure`."""
    began = _cpu_time()
    try:
        target.exercise(body)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        raise FuzzFailure(f"{type(error).__name__}: {str(error)[:300]}") from error
    took = _cpu_time() - began
    outcome.examples += 1
    outcome.slowest = max(outcome.slowest, took)
    if took > target.seconds:
        raise FuzzFailure(f"one input took {took:.1f} s of CPU time, {target.seconds:g} are allowed")


def fuzz(target: FuzzTarget, *, first_seed: int, examples: int = 0, seconds: float = 0.0) -> FuzzOutcome:
    """Replay the regressions, then try new inputs: so many, or for so long."""
    outcome, ends = FuzzOutcome(target.name), time.monotonic() + seconds
    for path in regressions_of(target):
        _tried(target, path.read_bytes(), outcome, origin=path.name)
    number = first_seed
    while not outcome.failure and (outcome.examples < examples or time.monotonic() < ends):
        _round(target, outcome, number, examples=min(ROUND, examples) or ROUND)
        number += 1
    outcome.peak_mb = getrusage(RUSAGE_SELF).ru_maxrss // 1024
    return outcome


def _tried(target: FuzzTarget, body: bytes, outcome: FuzzOutcome, *, origin: str) -> None:
    try:
        run_one(target, body, outcome)
    except FuzzFailure as failure:
        outcome.failure = f"{origin}: {failure}"


def _round(target: FuzzTarget, outcome: FuzzOutcome, number: int, *, examples: int) -> None:
    failed: list[bytes] = []

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(target.examples)
    def one(body: bytes) -> None:
        try:
            run_one(target, body, outcome)
        except FuzzFailure:
            failed[:] = [body]  # the last to fail is the smallest
            raise

    try:
        one()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        outcome.failure = f"seed {number}: {error}"
        if failed:
            outcome.failure += f" (kept as {_keep(target, failed[0]).name})"


def _keep(target: FuzzTarget, body: bytes) -> Path:
    path = REGRESSIONS / target.name.replace(" ", "-") / sha256(body).hexdigest()[:12]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(body)
    return path


def _cpu_time() -> float:
    own, children = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
