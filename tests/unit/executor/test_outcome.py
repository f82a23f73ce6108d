"""The table of `outcome`, row by row: the closing event of every fault."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.retry_policy import UNCHARGED_KINDS
from eventlog import payloads as p
from eventlog.codec import OversizeEvent
from eventlog.events import type_of
from eventlog.lifecycle import TRANSITIONS, Phase
from executor.contract import (
    CallFault,
    NeverReached,
    NoConnection,
    Overloaded,
    Permanent,
    RateLimited,
    Transient,
    Unreachable,
)
from executor.outcome import (
    MAX_MESSAGE,
    EvaluatorFault,
    EvaluatorTimedOut,
    TargetTimedOut,
    close_after,
)
from tests.builders import START

SOON = START + timedelta(seconds=9)
BACKOFF = START + timedelta(seconds=2)
"""Half of the four seconds that bound the backoff of the third attempt."""

LIMITED = RateLimited("slow down", retry_after=timedelta(seconds=9))
ROWS: dict[str, tuple[BaseException, tuple[str, str], tuple[str, str]]] = {
    "rate limit": (LIMITED, ("retrying", "rate_limited"), ("retrying", "rate_limited")),
    "overload": (Overloaded("busy"), ("retrying", "rate_limited"), ("retrying", "rate_limited")),
    "transient": (Transient("network", "reset"), ("retrying", "network"), ("failed", "network")),
    "no response": (Unreachable("network", "no"), ("retrying", "network"), ("failed", "network")),
    "no connection": (NoConnection("no"), ("retrying", "connection"), ("failed", "connection")),
    "never reached": (NeverReached("no"), ("retrying", "unreachable"), ("retrying", "unreachable")),
    "judge never reached": (
        EvaluatorFault("j", NeverReached("no")),
        ("retrying", "unreachable"),
        ("retrying", "unreachable"),
    ),
    "target time-out": (TargetTimedOut(30.0), ("retrying", "timeout"), ("timed_out", "timeout")),
    "permanent": (Permanent("refused", "no"), ("failed", "refused"), ("failed", "refused")),
    "plain fault": (CallFault("odd"), ("failed", "odd"), ("failed", "odd")),
    "too large": (OversizeEvent(2_000_000), ("failed", "oversize"), ("failed", "oversize")),
    "unexpected": (ZeroDivisionError("oh"), ("failed", "error"), ("failed", "error")),
    "a time-out of the target's own": (TimeoutError(), ("failed", "error"), ("failed", "error")),
    "the target leaves": (SystemExit(1), ("failed", "error"), ("failed", "error")),
    "judge's rate limit": (
        EvaluatorFault("j", LIMITED),
        ("retrying", "rate_limited"),
        ("retrying", "rate_limited"),
    ),
    "judge's transient": (
        EvaluatorFault("j", Transient("network")),
        ("retrying", "network"),
        ("failed", "evaluator"),
    ),
    "judge's permanent": (
        EvaluatorFault("j", Permanent("no")),
        ("failed", "evaluator"),
        ("failed", "evaluator"),
    ),
    "judge's time-out": (
        EvaluatorFault("j", EvaluatorTimedOut(5.0)),
        ("retrying", "timeout"),
        ("failed", "evaluator"),
    ),
    "judge's bug": (EvaluatorFault("j", KeyError("x")), ("failed", "evaluator"), ("failed", "evaluator")),
    "in disguise": (Transient("rate_limited"), ("retrying", "transient"), ("failed", "rate_limited")),
    "in a third": (Transient("unreachable"), ("retrying", "transient"), ("failed", "unreachable")),
    "in another": (Transient("shutdown"), ("retrying", "transient"), ("failed", "shutdown")),
}


def closing(error: BaseException, *, retries: int) -> p.Retrying | p.Failed | p.TimedOut:
    return close_after(error, retries=retries, attempt=3, now=START, jitter=0.5)


def _kind(closed: p.Retrying | p.Failed | p.TimedOut) -> str:
    assert closed.error
    return closed.error.kind


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("retries", [0, 1, 7])
@pytest.mark.parametrize("phase", [Phase.PROVISIONING, Phase.RUNNING, Phase.RESPONDED])
def test_every_fault_has_its_closing_event_legal_in_every_state(name, retries, phase):
    """The event follows from fault and retries, and is legal in every state."""
    error, with_retries, without = ROWS[name]
    closed = closing(error, retries=retries)
    assert (type_of(closed), _kind(closed)) == (with_retries if retries else without)
    assert type_of(closed) in TRANSITIONS[phase]


def test_every_kind_of_fault_is_in_the_table():
    """A new class of faults needs a row."""

    def all_below(cls: type[Any]) -> set[type[Any]]:
        children: list[type[Any]] = cls.__subclasses__()
        return {cls} | {each for child in children for each in all_below(child)}

    ours = {each for each in all_below(CallFault) if each.__module__ == "executor.contract"}
    assert ours == {type(error) for error, *_ in ROWS.values()} & all_below(CallFault)


@pytest.mark.parametrize("wrapped", [lambda error: error, lambda error: EvaluatorFault("j", error)])
def test_a_rate_limit_waits_for_its_retry_after(wrapped: Callable[[CallFault], BaseException]):
    """Without backoff, and without using up a retry."""
    closed = closing(wrapped(LIMITED), retries=0)
    assert isinstance(closed, p.Retrying)
    assert closed.retry_at == SOON
    assert closed.error.kind in UNCHARGED_KINDS


@pytest.mark.parametrize("error", [RateLimited("slow down"), Overloaded("busy")])
def test_a_refusal_without_retry_after_waits_by_exponential_backoff(error):
    """With full jitter; no retry is used up."""
    closed = closing(error, retries=0)
    assert isinstance(closed, p.Retrying)
    assert closed.retry_at == START + timedelta(seconds=2)
    assert closed.error.kind in UNCHARGED_KINDS


@pytest.mark.parametrize("asked", [timedelta(days=-1), timedelta(days=400_000)])
def test_an_absurd_retry_after_is_bounded(asked):
    """Neither in the past nor beyond a day."""
    closed = closing(RateLimited(retry_after=asked), retries=0)
    assert isinstance(closed, p.Retrying)
    assert START <= closed.retry_at <= START + timedelta(days=1)


@pytest.mark.parametrize(
    "error", [Transient("network"), TargetTimedOut(1.0), EvaluatorFault("j", Transient("n"))]
)
def test_a_transient_fault_is_retried_after_a_backoff(error):
    """Within a bound that doubles with the attempt."""
    closed = closing(error, retries=1)
    assert isinstance(closed, p.Retrying)
    assert closed.retry_at == BACKOFF
    assert closed.error.kind not in UNCHARGED_KINDS


def test_messages_name_fault_and_evaluator():
    """A fault by its message, any other exception by its type as well."""
    assert closing(Permanent("refused", "no"), retries=0).error == p.ErrorDetail(
        kind="refused", message="no"
    )
    odd = closing(EvaluatorFault("judge", KeyError("x")), retries=0).error
    assert odd == p.ErrorDetail(kind="evaluator", message="evaluator judge: KeyError: 'x'")


@given(st.text(), st.text())
def test_any_kind_and_message_can_be_recorded(kind, message):
    """Kinds are names and messages are bounded: no fault is lost for its text."""
    closed = closing(Permanent(kind, message + "x" * MAX_MESSAGE), retries=0)
    assert closed.error
    assert len(closed.error.message) <= MAX_MESSAGE
