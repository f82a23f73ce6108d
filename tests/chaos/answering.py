"""Target and judge of a fleet under test: both record every call, and both cost money."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random

from domain.batch_spec import EvaluatorSpec, TargetSpec
from eventlog import payloads as p
from executor.batch_runtime import Factories
from executor.contract import ExecutionEnvironment, RateLimited, ScoringRequest, TargetReply, TargetRequest
from tests.chaos.call_log import CallLog

ANSWER = p.TokenUsage(input_tokens=11, output_tokens=5)
JUDGEMENT = p.TokenUsage(output_tokens=3)
SHORTEST, LONGEST = 0.02, 0.18
"""Seconds that an answer takes, and a judgement: an executor may well be killed down meanwhile."""
IMPATIENT = 0.04
"""The share of calls that are turned away for a moment."""
SOON = timedelta(milliseconds=100)


@dataclass(slots=True)
class Answering:
    """A target that echoes its input after a while."""

    executor: str
    recorded: CallLog
    rng: Random = field(default_factory=Random)

    async def call(self, question: TargetRequest) -> TargetReply:
        """Answer, or throttle."""
        if self.rng.random() < IMPATIENT:
            raise RateLimited(retry_after=SOON)
        self.recorded.note(f"asked {self.executor} {question.evaluation_id}")
        await asyncio.sleep(_a_while(self.rng))
        self.recorded.note(f"answered {self.executor} {question.evaluation_id}")
        before = "".join(f"{answered}, " for _, answered in question.history)
        return TargetReply(p.Answer(output=before + question.prompt, usage=ANSWER, cost_usd=0.001))

    async def aclose(self) -> None:
        """Nothing is held."""


@dataclass(slots=True)
class Judging:
    """An evaluator that wants the very words."""

    executor: str
    name: str
    recorded: CallLog
    rng: Random = field(default_factory=Random)

    async def score(self, judged: ScoringRequest) -> p.Score:
        """Compare."""
        await asyncio.sleep(_a_while(self.rng))
        self.recorded.note(f"judged {self.executor} {judged.case.id}")
        passed = judged.output == judged.case.expected
        return p.Score(
            evaluator=self.name, score=float(passed), passed=passed, usage=JUDGEMENT, cost_usd=0.001
        )

    async def aclose(self) -> None:
        """Nothing is held."""


def _a_while(rng: Random) -> float:
    return SHORTEST + rng.random() * (LONGEST - SHORTEST)


def factories(executor: str, recorded: Path) -> Factories:
    """Make both for one executor, whatever the spec has."""
    kept = CallLog(recorded)

    def target(_spec: TargetSpec, _here: ExecutionEnvironment) -> Answering:
        return Answering(executor, kept)

    def evaluator(spec: EvaluatorSpec, _here: ExecutionEnvironment) -> Judging:
        return Judging(executor, spec.name, kept)

    return Factories(target, evaluator)


@dataclass(frozen=True, slots=True)
class RecordedCalls:
    """What both have written down."""

    counts: Counter[str]

    @classmethod
    def read(cls, path: Path) -> "RecordedCalls":
        """Read what was written so far."""
        return cls(CallLog(path).counts())

    def total(self, word: str) -> int:
        """Return how often something was done."""
        return sum(times for line, times in self.counts.items() if line.startswith(f"{word} "))

    def active(self, executor: str) -> int:
        """Return how many calls of an executor have not been answered."""
        asked, answered = (self.total(f"{word} {executor}") for word in ("asked", "answered"))
        return asked - answered

    @property
    def most_paid(self) -> int:
        """All that can have been paid for: no record may show more than that."""
        return self.total("answered") * ANSWER.total + self.total("judged") * JUDGEMENT.total
