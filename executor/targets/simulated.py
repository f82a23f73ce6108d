"""A simulated target, for tests and measurements of everything around targets.

Its behaviour is drawn from a digest of the seed and the evaluation's id: the same batch passes and fails
alike wherever and however often it runs. Only transient faults are drawn anew at each call, so that retries
can succeed.
"""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated

from pydantic import Field

from domain.batch_spec import Options
from domain.template import as_text
from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, TargetReply, TargetRequest, Transient
from executor.options import OptionModel, read_options

Rate = Annotated[float, Field(ge=0, le=1)]
WRONG = "simulated wrong answer"


class SimulatedTargetOptions(OptionModel):
    """The behaviour of the simulated target."""

    pass_rate: Rate = 0.85
    latency: float = Field(default=0.0, ge=0, le=86_400)
    """Seconds an answer takes, on average."""
    jitter: Rate = 0.0
    """The deviation of the latency, as a share of its mean."""
    transient_rate: Rate = 0.0
    permanent_rate: Rate = 0.0
    tokens: int = Field(default=0, ge=0, le=10**9)
    cost_usd: float = Field(default=0.0, ge=0, le=1e6)
    seed: int | str = 0


@dataclass(frozen=True, slots=True)
class SimulatedTarget:
    """A target that simulates answers, latency and faults."""

    options: SimulatedTargetOptions
    jitter: random.Random = field(default_factory=random.Random)

    async def call(self, request: TargetRequest) -> TargetReply:
        """Return a right or wrong answer after the latency, or fail, as drawn for this evaluation."""
        options, dice = self.options, _dice(self.options.seed, request)
        delay = options.latency * (1 + options.jitter * (2 * next(dice) - 1))
        if delay > 0:
            await asyncio.sleep(delay)
        if next(dice) < options.permanent_rate:
            raise Permanent("simulated", "a simulated permanent fault")
        if options.transient_rate and self.jitter.random() < options.transient_rate:
            raise Transient("simulated", "a simulated transient fault")
        output = _right_answer(request.case) if next(dice) < options.pass_rate else WRONG
        usage = p.TokenUsage(output_tokens=options.tokens)
        return TargetReply(
            p.Answer(output=output, usage=usage, cost_usd=options.cost_usd, latency_ms=delay * 1e3)
        )

    async def aclose(self) -> None:
        """Leave nothing behind: there is nothing."""


class SimulatedTargetType:
    """Creates simulated targets."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        read_options(SimulatedTargetOptions, options, of="the simulated target")

    def make(self, options: Options, environment: ExecutionEnvironment) -> SimulatedTarget:  # noqa: ARG002 - needs none
        """Make one."""
        return SimulatedTarget(read_options(SimulatedTargetOptions, options, of="the simulated target"))


SIMULATED = SimulatedTargetType()


def _dice(seed: int | str, request: TargetRequest) -> Iterator[float]:
    """Draw numbers from 0 to 1 that depend on the seed and the evaluation alone."""
    digest = sha256(f"{seed}\n{request.evaluation_id}\n{request.repetition}".encode()).digest()
    return (int.from_bytes(digest[at : at + 8]) / 2**64 for at in range(0, 32, 8))


def _right_answer(case: p.Case) -> str:
    return "simulated answer" if case.expected is None else as_text(case.expected)
