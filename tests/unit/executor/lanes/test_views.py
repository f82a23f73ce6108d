"""A lane as it is shown: blocked, since when, and by what."""

import pytest

from executor.lanes.contract import BlockedBy, CallOutcome, LanePolicy
from tests.unit.executor.lanes.lane_model import Lane, broken
from tests.unit.executor.lanes.simulated_fleet import START


def test_since_is_the_start_of_the_uninterrupted_block():
    """It stays while the same reason holds; a full grant or an idle period ends it."""
    lane = Lane(LanePolicy(rpm=60))
    lane.asks(1)
    lane.later(0.5).asks(5)
    assert (lane.view.blocked_by, lane.view.since, lane.view.until) == (BlockedBy.RATE, START, START + 1)
    lane.later(0.6).asks(1)
    assert lane.view.blocked_by is None
    lane.asks(1)
    assert lane.view.since == pytest.approx(START + 1.1)
    assert lane.later(60).view.blocked_by is None


def test_a_view_reports_a_block_and_an_open_breaker_without_an_acquire_request():
    """Once the block has expired, the view no longer reports it."""
    lane = Lane().settles(CallOutcome.FAILED, retry_after=10.0)
    assert lane.view.message == "Retry-After for 10 s more"
    assert lane.later(10).view.blocked_by is None
    assert broken().view.blocked_by is BlockedBy.BREAKER
