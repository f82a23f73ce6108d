"""What a target of fuzzing is."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

import hypothesis.strategies as st

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class FuzzTarget(NamedTuple):
    """One entry point for what others wrote."""

    name: str
    examples: st.SearchStrategy[bytes]
    exercise: Callable[[bytes], object]
    """Raises what is no documented error, or where a value is not what it should be."""
    seconds: float = 2.0
    """CPU time that one input may take."""
