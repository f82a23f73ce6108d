"""Which faults use up a retry, and which do not."""

RATE_LIMITED = "rate_limited"
"""The other side asked for patience."""
SHUTDOWN = "shutdown"
"""An executor that was told to stop handed the evaluation back."""
MOVED = "moved"
"""Whoever resumed the batch withdrew the evaluation, to have it asked in a provider batch."""
UNREACHABLE = "unreachable"
"""No connection to an endpoint that has not answered any call of the batch."""

HANDED_BACK_KINDS = frozenset({SHUTDOWN, MOVED, UNREACHABLE})
"""The attempt was handed back before its end, or nothing received its call: the next one is no retry."""

UNCHARGED_KINDS = frozenset({RATE_LIMITED, SHUTDOWN, MOVED, UNREACHABLE})
"""Nobody's fault: the evaluation is tried again, and its retries stay what they are."""
