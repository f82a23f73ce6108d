"""Tokens of a document are bounded while they are read."""

import io

import pytest

from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.datasets.metered_stream import READ_AHEAD, MeteredStream
from scoreline.submit.datasets.record import MAX_ROW_BYTES


def test_a_token_is_bounded_and_an_event_resets_the_count():
    """A parser that yields reads on without a limit; one that does not is stopped after one row's size."""
    stream = MeteredStream(io.BytesIO(b"x" * (3 * MAX_ROW_BYTES)))
    for _ in range(3):
        stream.read(MAX_ROW_BYTES - READ_AHEAD)
        stream.progressed()
    stream = MeteredStream(io.BytesIO(b"x" * (3 * MAX_ROW_BYTES)))
    stream.read(MAX_ROW_BYTES + READ_AHEAD + 1)
    with pytest.raises(Unfit, match="one value is longer than 2 MB, before byte 2,228,225"):
        stream.read(1)
