"""What each event carries: frozen, typed, capped.

Pydantic dataclasses with slots, not models: a reader makes millions of these, and without a dictionary
in each they are validated in half the time and take a sixth of the memory.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, ConfigDict, Field, JsonValue, StringConstraints
from pydantic.dataclasses import dataclass

from domain.ids import Name

MAX_TEXT = 512 * 1024
"""Characters in one free text: an output, a message, a reason."""

Text = Annotated[str, StringConstraints(max_length=MAX_TEXT)]
Count = Annotated[int, Field(ge=0, le=2**53)]
Amount = Annotated[float, Field(ge=0, le=1e12)]
Tokens = Annotated[int, Field(ge=0, le=10**12)]
"""Tokens of one call. Counters are 64 bits wide: nine million calls of this size fit into one."""


STRICT = ConfigDict(extra="forbid", allow_inf_nan=False, defer_build=True)
"""No unknown fields, no numbers that JSON lacks; built at the first use, which most commands never make."""


@dataclass(frozen=True, slots=True, config=STRICT)
class TokenUsage:
    """Tokens a call consumed."""

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0

    @property
    def total(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True, config=STRICT)
class Case:
    """The test case an evaluation runs."""

    id: Name
    input: JsonValue = None
    expected: JsonValue = None
    metadata: dict[str, JsonValue] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, config=STRICT)
class Answer:
    """A target's response, and what it cost."""

    output: Text
    usage: TokenUsage = TokenUsage()
    cost_usd: Amount = 0.0
    latency_ms: Amount = 0.0
    cached: bool = False


@dataclass(frozen=True, slots=True, config=STRICT)
class Score:
    """One evaluator's judgement of one answer."""

    evaluator: Name
    score: Annotated[float, Field(ge=-1e12, le=1e12)]
    passed: bool | None = None
    reason: Text = ""
    usage: TokenUsage = TokenUsage()
    cost_usd: Amount = 0.0


@dataclass(frozen=True, slots=True, config=STRICT)
class ErrorDetail:
    """Why an attempt did not complete."""

    kind: Name
    message: Text = ""


class OpeningReason(StrEnum):
    """Why the coordinator opened an attempt."""

    SUBMITTED = "submitted"
    RETRY = "retry"
    LOST = "lost"
    OPERATOR = "operator"
    SCORING = "scoring"


@dataclass(frozen=True, slots=True, config=STRICT)
class Queued:
    """Sequence 0: the attempt is open; an answer already known travels along and is not paid for again."""

    case: Case
    reason: OpeningReason = OpeningReason.SUBMITTED
    answer: Answer | None = None
    scores: tuple[Score, ...] = ()
    epoch: str = Field(default="", max_length=200)
    variant: Count = 0
    """Which prompt and target of the batch's spec."""
    repetition: Annotated[int, Field(ge=1, le=10_000)] = 1
    retries: Count = 3
    """Transient faults that the evaluation may still survive, this attempt's included."""
    in_group: bool = False
    """Whether earlier evaluations of a serial group have left something for this one."""
    resumed: Literal[True] | None = None
    """Set where the attempt before was handed back, moved or never started: this one is not a retry.

    Absent from the JSON otherwise, so that readers of an earlier release accept every other opening.
    """


@dataclass(frozen=True, slots=True, config=STRICT)
class Cancelled:
    """Sequence 0: opens an attempt and ends the evaluation at once."""

    by: Name
    reason: Text = ""


@dataclass(frozen=True, slots=True, config=STRICT)
class Provisioning:
    """Sequence 1, the claim: this instance owns the attempt from here on."""

    executor: Name
    nonce: Name
    runtime: Name = "process"


@dataclass(frozen=True, slots=True, config=STRICT)
class Running:
    """The target has started."""

    target: Name
    process: str = Field(default="", max_length=200)


@dataclass(frozen=True, slots=True, config=STRICT)
class Responded(Answer):
    """The target has answered: paid work is on record before it is scored."""


@dataclass(frozen=True, slots=True, config=STRICT)
class Scored(Score):
    """One evaluator has judged the answer."""


@dataclass(frozen=True, slots=True, config=STRICT)
class Completed:
    """The verdict; self-contained but for the output when `responded` precedes it."""

    verdict: Literal["passed", "failed"]
    score: Annotated[float, Field(ge=-1e12, le=1e12)] | None = None
    scores: tuple[Score, ...] = ()
    usage: TokenUsage = TokenUsage()
    cost_usd: Amount = 0.0
    latency_ms: Amount = 0.0
    output: Text | None = None
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None


@dataclass(frozen=True, slots=True, config=STRICT)
class Retrying:
    """A transient fault: closes the attempt, not the evaluation."""

    error: ErrorDetail
    retry_at: AwareDatetime


@dataclass(frozen=True, slots=True, config=STRICT)
class Failed:
    """A permanent fault; scores that were computed before it are kept."""

    error: ErrorDetail
    scores: tuple[Score, ...] = ()
    """Of the evaluators that came to one; the error names those that did not."""
    usage: TokenUsage = TokenUsage()
    cost_usd: Amount = 0.0
    latency_ms: Amount = 0.0


@dataclass(frozen=True, slots=True, config=STRICT)
class TimedOut:
    """A limit has passed; at sequence 0 the coordinator's, later the owner's."""

    limit: Name
    seconds: Amount
    error: ErrorDetail | None = None


AnyPayload = (
    Queued
    | Cancelled
    | Provisioning
    | Running
    | Responded
    | Scored
    | Completed
    | Retrying
    | Failed
    | TimedOut
)
"""The sum of all payloads."""

JsonObject = dict[str, Any]
