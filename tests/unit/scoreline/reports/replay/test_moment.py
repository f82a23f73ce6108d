"""The moments at which a history is cut."""

from datetime import UTC, datetime

import pytest

from scoreline.reports.replay.moment import NoSuchMoment
from scoreline.reports.replay.past_state import cut
from tests.unit.scoreline.reports.replay.past_histories import reordered


@pytest.mark.parametrize("number", [0, 7, 1_000_000])
async def test_a_number_out_of_range_is_rejected_with_the_range(number: int):
    """The message has the valid range of entries."""
    with pytest.raises(NoSuchMoment, match="1 to 6"):
        cut((await reordered()).replayed(), number)


async def test_a_time_before_the_first_arrival_is_rejected():
    """The message has the time of the first arrival."""
    replayed = (await reordered()).replayed()
    with pytest.raises(NoSuchMoment, match="the first entry came at"):
        cut(replayed, datetime(2000, 1, 1, tzinfo=UTC))
