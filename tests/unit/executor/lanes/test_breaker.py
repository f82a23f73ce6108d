"""The circuit breaker of a lane, with one half-open probe in the fleet."""

from dataclasses import replace

import pytest

from executor.lanes.contract import BlockedBy, CallOutcome, Grant, LanePolicy
from tests.unit.executor.lanes.lane_model import Lane, broken
from tests.unit.executor.lanes.simulated_fleet import START


def test_failures_in_a_row_open_the_breaker_and_answers_between_them_do_not():
    """Any answer shows that the provider is up."""
    lane = Lane()
    for outcome in (CallOutcome.OK, CallOutcome.REFUSED, CallOutcome.RATE_LIMITED):
        lane.settles(CallOutcome.FAILED, 4).settles(outcome)
    assert lane.view.breaker == "closed"
    assert broken().view.breaker == "open"
    assert broken().asks(1) == Grant(0, 0.0, BlockedBy.BREAKER, 1.0)


def test_one_probe_in_the_whole_fleet():
    """The half-open breaker grants one probe; every other executor gets no permit and polls again."""
    lane = broken().later(30)
    assert lane.view.breaker == "half_open"
    assert lane.asks(5) == Grant(1, 0.0, BlockedBy.BREAKER, 1.0)
    assert lane.asks(5, who="b").granted == 0
    assert lane.view.message == "circuit breaker open after 5 consecutive failures; probe in flight"


def test_a_probe_that_fails_opens_it_again():
    """The full period starts again; `since` stays the time of the first opening."""
    lane = broken().later(30)
    lane.asks(1)
    lane.later(1).settles(CallOutcome.FAILED, age=1.0)
    assert (lane.view.breaker, lane.view.since, lane.view.until) == ("open", START + 1, START + 62)


@pytest.mark.parametrize("outcome", [CallOutcome.OK, CallOutcome.REFUSED])
def test_a_probe_that_is_answered_closes_it_without_a_herd(outcome):
    """Concurrency starts low again, and no credit remains from the open period."""
    lane = Lane(LanePolicy(rpm=600))
    lane.state = replace(lane.state, concurrency=500.0)
    lane.settles(CallOutcome.FAILED, 5).later(30)
    lane.asks(1)
    lane.later(31).settles(outcome)
    assert (lane.view.breaker, lane.view.failures, lane.state.concurrency) == ("closed", 0, 32)
    assert lane.asks(100).granted == 1


@pytest.mark.parametrize("outcome", [CallOutcome.UNUSED, CallOutcome.ABANDONED])
def test_a_probe_without_a_result_is_replaced(outcome):
    """A probe returned unused is replaced at once; one of a dead executor after a minute."""
    lane = broken().later(30)
    lane.asks(1)
    lane.later(1).settles(outcome, age=1.0)
    assert lane.asks(1, who="b").granted == 1
    assert lane.later(59).asks(1, who="c").granted == 0
    assert lane.later(1).asks(1, who="c").granted == 1


def test_a_failure_from_before_it_opened_does_not_keep_it_open():
    """Calls that were in flight at the time are no new evidence, before or after it closes."""
    lane = broken().later(20).settles(CallOutcome.FAILED, age=20.5)
    assert lane.view.until == START + 31
    lane.settles(CallOutcome.OK).settles(CallOutcome.FAILED, 9, age=20.5)
    assert (lane.view.breaker, lane.view.failures) == ("closed", 0)


def test_an_answer_from_before_it_opened_closes_it():
    """It shows that the provider is up, whenever the call started."""
    assert broken().later(1).settles(CallOutcome.OK, age=2.0).view.breaker == "closed"
