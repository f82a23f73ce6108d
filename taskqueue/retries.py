"""Which faults use up a retry, and which do not."""

RATE_LIMITED = "rate_limited"
"""The other side asked for patience."""
SHUTDOWN = "shutdown"
"""An executor that was told to stop handed the evaluation back."""
MOVED = "moved"
"""Whoever resumed the batch withdrew the evaluation, to have it asked in a provider batch."""

HANDED_BACK_KINDS = frozenset({SHUTDOWN, MOVED})
"""The attempt was handed back before its end: the next one continues it and is no retry."""

UNCHARGED_KINDS = frozenset({RATE_LIMITED, SHUTDOWN, MOVED})
"""Nobody's fault: the evaluation is tried again, and its retries stay what they are."""
