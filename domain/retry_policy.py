"""The retry policy of an evaluation: how long its next attempt waits, and which faults use up a retry.

    fault                              delay                                       uses up a retry
    transient fault, time-out          exponential backoff with full jitter:       yes
                                       a random share of 1, 2, 4, ... 60 s
    rate limit, overload               the provider's Retry-After, at most a day;  no
                                       without one, as for a transient fault
    no connection at first contact     5 s                                         no
    stopping executor, moved by an     none                                        no
    operator to a provider batch

`executor/outcome.py` maps the fault of an attempt to its closing event by these rules.
"""

from datetime import timedelta

RATE_LIMITED = "rate_limited"
"""The provider rejected the call because of its rate limit."""
SHUTDOWN = "shutdown"
"""A stopping executor returned the evaluation."""
MOVED = "moved"
"""An operator moved the evaluation to a provider batch."""
UNREACHABLE = "unreachable"
"""No connection to an endpoint that has not answered any call of the batch."""

HANDED_BACK_KINDS = frozenset({SHUTDOWN, MOVED, UNREACHABLE})
"""The attempt was handed back before its end, or nothing received its call: the next one is no retry."""

UNCHARGED_KINDS = frozenset({RATE_LIMITED, SHUTDOWN, MOVED, UNREACHABLE})
"""Faults that use up no retry: the evaluation is tried again."""

FIRST_BACKOFF = timedelta(seconds=1)
LONGEST_BACKOFF = timedelta(seconds=60)
FIRST_CONTACT_RETRY = timedelta(seconds=5)
LONGEST_RETRY_AFTER = timedelta(days=1)


def full_jitter(attempt: int, jitter: float) -> timedelta:
    """Return exponential backoff with full jitter: a share of a bound that doubles with each attempt."""
    doublings = min(attempt - 1, 16)
    return min(FIRST_BACKOFF * (1 << doublings), LONGEST_BACKOFF) * jitter


def bounded(retry_after: timedelta) -> timedelta:
    """Limit a provider's Retry-After to a day; one in the past is no delay."""
    return min(max(retry_after, timedelta(0)), LONGEST_RETRY_AFTER)


def charged_kind(kind: str) -> str:
    """Name a fault that uses up a retry, whatever its target calls it."""
    return "transient" if kind in UNCHARGED_KINDS else kind
