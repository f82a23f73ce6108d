"""Faults of calls: their texts, and the tree by which they are handled."""

from datetime import timedelta

import pytest

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


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        (Permanent("template"), "template"),
        (Transient("http_500", "bad gateway"), "http_500: bad gateway"),
        (RateLimited(), "rate_limited"),
        (Overloaded("busy", retry_after=timedelta(seconds=1)), "rate_limited: busy"),
        (NoConnection("h: connection refused"), "connection: h: connection refused"),
        (NeverReached("h: refused"), "unreachable: h: refused; it has not answered yet"),
    ],
)
def test_a_fault_is_written_as_kind_and_message(fault: CallFault, text: str) -> None:
    """Without a message it is the kind alone."""
    assert str(fault) == text
    assert text.startswith(fault.kind)


@pytest.mark.parametrize(
    ("fault", "is_uncharged", "is_retried", "opens_breaker"),
    [
        (RateLimited(), True, False, False),
        (Overloaded(), True, False, False),
        (NeverReached("x"), False, False, False),
        (Transient("x"), False, True, False),
        (Unreachable("x"), False, True, True),
        (NoConnection("x"), False, True, True),
        (Permanent("x"), False, False, False),
    ],
)
def test_a_fault_is_handled_by_its_place_in_the_tree(
    fault: CallFault, *, is_uncharged: bool, is_retried: bool, opens_breaker: bool
) -> None:
    """Handlers match base classes; a first contact that fails is none of them."""
    assert isinstance(fault, RateLimited) is is_uncharged
    assert isinstance(fault, Transient) is is_retried
    assert isinstance(fault, Unreachable) is opens_breaker
