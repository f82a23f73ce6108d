"""What a batch is about, as it travels: validated where it is submitted, read where its tasks are run.

It holds no data and no secret: cases travel in the log, keys stay in the environment of executors.
"""

from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, NamedTuple

from pydantic import ConfigDict, Field, JsonValue, TypeAdapter
from pydantic.dataclasses import dataclass

from domain.eligibility import MAX_LABELS, Label
from domain.ids import Name

STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)
Options = dict[str, JsonValue]
Seconds = Annotated[float, Field(gt=0, le=7 * 86_400)]


@dataclass(frozen=True, slots=True, config=STRICT)
class Limits:
    """Rate limits of one lane, for the whole fleet; None: to be learnt."""

    rpm: Annotated[float, Field(gt=0, le=1e9)] | None = None
    tpm: Annotated[float, Field(gt=0, le=1e12)] | None = None
    max_concurrency: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    delay: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    """Seconds between two calls, at least."""


@dataclass(frozen=True, slots=True, config=STRICT)
class TargetSpec:
    """What is asked: a type that a registry knows, and its options."""

    type: Name
    label: Name
    """How people name it: `recorded:solutions.jsonl`, `openai/gpt-5`."""
    options: Options = Field(default_factory=dict)
    is_metered: bool = False
    """Whether it has a lane: its tasks have a queue of their own, so that they block no other target."""
    rate_limits: Limits | None = None
    """Limits of its lane; each kind that is given replaces the batch's."""


@dataclass(frozen=True, slots=True, config=STRICT)
class EvaluatorSpec:
    """Who judges: a type that a registry knows, a name for its column, and its options."""

    type: Name
    name: Name
    options: Options = Field(default_factory=dict)
    timeout: Seconds = 60.0
    is_metered: bool = False
    rate_limits: Limits | None = None


class BatchFallback(StrEnum):
    """What becomes of a request that a provider batch did not answer."""

    RESUBMIT = "resubmit"
    SYNC = "sync"


@dataclass(frozen=True, slots=True, config=STRICT)
class BatchSpec:
    """All that an executor must know of a batch, but for its cases."""

    name: Name
    targets: tuple[TargetSpec, ...] = Field(min_length=1)
    prompts: tuple[str, ...] = Field(default=("{input}",), min_length=1)
    evaluators: tuple[EvaluatorSpec, ...] = ()
    repetitions: int = Field(default=1, ge=1, le=10_000)
    retries: int = Field(default=3, ge=0, le=100)
    """Transient faults and lost executors that an evaluation may survive."""
    timeout: Seconds = 300.0
    """For one call of the target."""
    workdir: str = ""
    """Where the batch was submitted: `python:` targets are imported from there."""
    interpreter: str = ""
    """Of the submitter's Python: what `python:` targets run under; none: the executor's own."""
    limits: Limits = Limits()
    """Of every metered target and judge that has none of its own."""
    accounts: dict[Name, Limits] = Field(default_factory=dict)
    """By provider, by provider and account, or by the name of a lane: limits of each such lane."""
    max_concurrency: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Calls of this batch in flight at a time: all targets and judges, the whole fleet."""
    fail_fast_after: int = Field(default=20, ge=0, le=1_000_000)
    """Permanent failures in a row after which the batch is paused; 0: never."""
    batch_api: BatchFallback | None = None
    """Whether answers come from provider batches, and what becomes of requests that get none there."""
    requires: tuple[Label, ...] = Field(default=(), max_length=MAX_LABELS)
    """Labels that an executor must declare to serve it."""

    @property
    def variants(self) -> "tuple[Variant, ...]":
        """Every prompt with every target, in order."""
        return tuple(self._variants())

    def _variants(self) -> "Iterator[Variant]":
        number = 0
        for prompt in self.prompts:
            for target in self.targets:
                yield Variant(number, prompt, target)
                number += 1

    @property
    def scores_sequentially(self) -> bool:
        """Whether an attempt calls its evaluators one after the other: its calls in flight are limited."""
        return self.max_concurrency is not None

    @property
    def attempt_deadline(self) -> timedelta:
        """The longest that a claimed attempt may run: one call of its target, then its evaluators.

        Evaluators run concurrently, so the slowest decides; where they run one after the other, their sum.
        """
        timeouts = [each.timeout for each in self.evaluators]
        scoring = sum(timeouts) if self.scores_sequentially else max(timeouts, default=0.0)
        return timedelta(seconds=self.timeout + scoring)


class Variant(NamedTuple):
    """One prompt, one target."""

    number: int
    prompt: str
    target: TargetSpec


SPEC: TypeAdapter[BatchSpec] = TypeAdapter(BatchSpec)


def pack(spec: BatchSpec) -> bytes:
    """Write a spec for the road."""
    return SPEC.dump_json(spec)


def unpack(body: bytes | str) -> BatchSpec:
    """Read a spec that travelled."""
    return SPEC.validate_json(body)
