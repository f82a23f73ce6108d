"""Which faults use up a retry, and which do not."""

RATE_LIMITED = "rate_limited"
"""Error kinds of a throttled call: the provider is reached and asks for a later one."""
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
