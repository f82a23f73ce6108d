"""A lane's rules, one by one."""

from dataclasses import replace

import pytest

from executor.lanes.contract import BlockedBy, CallOutcome, Grant, LanePolicy
from providers.limits import Headroom, RateLimits
from tests.unit.executor.lanes.lane_model import Lane
from tests.unit.executor.lanes.simulated_fleet import START


def limits(limit: float | None = None, remaining: float | None = None) -> RateLimits:
    return RateLimits(requests=Headroom(limit, remaining))


def test_a_new_lane_is_empty_not_full():
    """The first call waits for its share of a minute, and there is no credit before it."""
    lane = Lane(LanePolicy(rpm=600))
    grant = lane.asks(5)
    assert (grant.granted, grant.blocked_by) == (0, BlockedBy.RATE)
    assert grant.ready_in == pytest.approx(0.1)
    assert lane.later(0.1).asks(5).granted == 1


def test_credit_is_a_quarter_of_a_second_at_most():
    """An idle hour gives no more."""
    lane = Lane(LanePolicy(rpm=600))
    lane.asks(1)
    assert lane.later(3_600).asks(100).granted == 3


def test_many_calls_a_second_are_granted_a_few_at_a_time():
    """A throttled request is retried when several permits are available, long before credit is lost."""
    lane = Lane(LanePolicy(rpm=3_000))
    lane.asks(1)
    assert lane.later(1).asks(1_000) == Grant(13, 0.0, BlockedBy.RATE, 0.1)
    slow = Lane(LanePolicy(rpm=6))
    slow.asks(1)
    slow.later(10).asks(1)
    assert slow.asks(1).ready_in == pytest.approx(9.75)


def test_a_limit_in_headers_applies_if_it_is_lower():
    """The lower of the policy's limit and the advertised limit applies."""
    lane = Lane(LanePolicy(rpm=600))
    lane.asks(1)
    assert lane.settles(CallOutcome.OK, limits=limits(60)).state.advertised_rpm == 60
    lane.asks(1)
    assert lane.view.rpm == 60
    lane.settles(CallOutcome.OK, limits=limits(6_000)).asks(1)
    assert lane.view.rpm == 600


def test_a_lower_remaining_quota_than_calls_in_flight_blocks_the_lane():
    """The provider allows two more, and eight are in flight."""
    lane = Lane()
    assert lane.asks(8).granted == 8
    lane.settles(CallOutcome.OK, limits=limits(60, 2)).asks(1, held=7)
    assert lane.state.next_request_at == pytest.approx(START + 6)


def test_headers_never_move_the_schedule_back():
    """A large remaining quota does not make a call due earlier."""
    lane = Lane(LanePolicy(rpm=60))
    lane.asks(1)
    due = lane.state.next_request_at
    assert lane.settles(CallOutcome.OK, limits=limits(60, 60)).state.next_request_at == due


def test_a_gap_lets_one_call_through_at_a_time():
    """This holds however many are requested."""
    lane = Lane(LanePolicy(gap=5.0))
    lane.asks(1)
    assert lane.later(5).asks(3) == Grant(1, 0.0, BlockedBy.GAP, 5.0)
    assert lane.later(4.9).asks(3).granted == 0
    assert lane.later(0.2).asks(1).granted == 1


def test_a_reservation_is_settled_to_what_was_used():
    """Unused tokens are returned, and excess tokens are owed."""
    lane = Lane(LanePolicy(tpm=6_000))
    lane.asks(1, estimate=100)
    grant = lane.later(1).asks(1, estimate=100)
    assert grant == Grant(1, 100.0)
    due = lane.state.next_token_at
    lane.settles(CallOutcome.OK, reserved=100.0, tokens=300)
    assert lane.state.next_token_at == pytest.approx(due + 2.0)
    lane.settles(CallOutcome.UNUSED, reserved=100.0)
    assert lane.state.next_token_at == pytest.approx(due + 1.0)
    lane.settles(CallOutcome.FAILED, reserved=100.0)
    assert lane.state.next_token_at == pytest.approx(due + 1.0)


def test_tokens_per_call_are_learnt():
    """After the first settlement, the learnt average replaces the caller's estimate."""
    lane = Lane(LanePolicy(tpm=600_000)).settles(CallOutcome.OK, reserved=10.0, tokens=200)
    assert lane.asks(1, estimate=10).reserved == 200
    lane.settles(CallOutcome.OK, reserved=200.0, tokens=300)
    assert lane.view.tokens_per_call == pytest.approx(210)


def test_until_tokens_per_call_are_known_only_a_few_calls_start():
    """An estimate may be wrong by any factor."""
    lane = Lane(LanePolicy(tpm=6_000_000))
    lane.asks(1, estimate=1)
    assert lane.later(1).asks(100, estimate=1).granted == 4
    assert lane.asks(100, held=4, estimate=1).blocked_by is BlockedBy.CONCURRENCY
    assert lane.settles(CallOutcome.OK, reserved=1.0).asks(100, held=3, estimate=1).granted > 4


def test_a_lane_of_unknown_limits_starts_with_few_calls_and_adds_one_for_each_that_went_well():
    """The limit doubles each round, until the first refusal."""
    lane = Lane()
    assert lane.asks(100) == Grant(8, 0.0, BlockedBy.CONCURRENCY, 0.05)
    lane.settles(CallOutcome.OK, 8)
    assert lane.asks(100).granted == 16


def test_an_unused_concurrency_limit_does_not_grow():
    """One call at a time is no evidence for many."""
    lane = Lane()
    for _ in range(50):
        lane.asks(1)
        lane.settles(CallOutcome.OK)
    assert lane.state.concurrency == 8


def test_a_refusal_halves_once_for_all_calls_under_way():
    """Eight refusals of one round are one multiplicative decrease; one of a later call is another."""
    lane = Lane()
    lane.asks(8)
    lane.later(1).settles(CallOutcome.RATE_LIMITED, 8, age=1.0, retry_after=1.0)
    assert (lane.state.concurrency, lane.view.rate_limited) == (4, 8)
    lane.later(5).settles(CallOutcome.RATE_LIMITED, age=1.0, retry_after=1.0)
    assert lane.state.concurrency == 2


def test_after_a_cut_it_grows_by_one_a_round():
    """Additive increase: four successes at a limit of four raise it to about five."""
    lane = Lane()
    lane.asks(8)
    lane.settles(CallOutcome.RATE_LIMITED, retry_after=1.0)
    assert lane.later(1).settles(CallOutcome.OK, 4).state.concurrency == pytest.approx(5, abs=0.1)


def test_a_configured_concurrency_limit_overrides_the_learnt_one():
    """The fleet's limit is three, and another executor holds two."""
    lane = Lane(LanePolicy(max_concurrency=3))
    assert lane.asks(2, who="b").granted == 2
    assert lane.asks(2).granted == 1


def test_an_executor_that_has_gone_silent_is_forgotten():
    """Its permits are free after a minute; an executor that polls again keeps the permits it declares."""
    lane = Lane()
    lane.asks(8, who="gone")
    assert lane.later(59).asks(1).granted == 0
    assert lane.later(2).asks(8).granted == 8
    assert lane.later(50).asks(0, held=8).granted == 0
    assert lane.later(50).view.in_flight == 8


def test_retry_after_delays_the_lane_and_saves_up_nothing():
    """After it, calls start one by one, at the lane's rate."""
    lane = Lane(LanePolicy(rpm=600))
    lane.asks(1)
    lane.later(1).asks(1)
    lane.settles(CallOutcome.RATE_LIMITED, retry_after=20.0)
    assert lane.asks(1) == Grant(0, 0.0, BlockedBy.RETRY_AFTER, 1.0)
    assert (lane.view.blocked_by, lane.view.until) == (BlockedBy.RETRY_AFTER, START + 21)
    assert lane.later(20).asks(10).granted == 1
    assert lane.view.blocked_by is BlockedBy.RATE


def test_the_longest_retry_after_counts():
    """A later and shorter one does not unblock the lane."""
    lane = (
        Lane().settles(CallOutcome.RATE_LIMITED, retry_after=20.0).settles(CallOutcome.OK, retry_after=1.0)
    )
    assert lane.state.blocked_until == START + 20


@pytest.mark.parametrize("retry_after", [None, 0.0])
def test_refusals_without_retry_after_back_off_exponentially(retry_after):
    """Where nothing succeeds: one second, two, four; a success of a call granted since then resets it."""
    lane, pauses = Lane(), []
    for _ in range(7):
        lane.settles(CallOutcome.RATE_LIMITED, 6, retry_after=retry_after)
        pauses.append(lane.state.blocked_until - lane.now)
        lane.later(60)
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    lane.settles(CallOutcome.OK).settles(CallOutcome.RATE_LIMITED, 6)
    assert lane.state.blocked_until == lane.now + 1


def test_a_few_refusals_without_retry_after_among_successes_change_nothing():
    """One in four is noise: the lane stays open, and learns no rate."""
    lane = Lane()
    lane.settles(CallOutcome.OK, 30).later(1).settles(CallOutcome.RATE_LIMITED, 10)
    assert (lane.state.concurrency, lane.state.learnt_rpm, lane.state.blocked_until) == (8, 0, 0)
    assert lane.view.rate_limited == 10
    assert lane.asks(8).granted == 8


def learnt(rate: float, refused_rpm: float = 0.0) -> Lane:
    """Return a lane that measures 600 successes a minute, and has learnt a rate."""
    lane = Lane()
    lane.state = replace(lane.state, oks_since=START, learnt_rpm=rate, refused_rpm=refused_rpm)
    for _ in range(50):
        lane.later(0.1).settles(CallOutcome.OK)
    lane.state = replace(lane.state, learnt_rpm=rate)
    return lane


def test_a_single_refusal_without_retry_after_lowers_a_learnt_rate_a_little():
    """The rate at which it came is remembered: growth is slow near it."""
    lane = learnt(650.0).settles(CallOutcome.RATE_LIMITED)
    assert (lane.state.learnt_rpm, lane.state.refused_rpm) == (0.97 * 650, 650)
    assert (lane.state.blocked_until, lane.state.concurrency) == (0, 8)


def test_a_refusal_well_below_the_measured_rate_does_not_lower_the_learnt_one():
    """The provider serves more than that: for ten seconds such replies are noise."""
    lane = learnt(500.0, refused_rpm=700.0).settles(CallOutcome.RATE_LIMITED)
    assert (lane.state.learnt_rpm, lane.state.refused_rpm) == (500, 0)
    lane.later(5).settles(CallOutcome.RATE_LIMITED)
    assert lane.state.learnt_rpm == 500


# Overloads.


def test_an_overload_among_successes_changes_nothing():
    """Neither concurrency nor the learnt rate, and the lane stays open, whatever Retry-After it carries."""
    lane = learnt(650.0).settles(CallOutcome.OVERLOADED, 10, retry_after=30.0)
    assert (lane.state.concurrency, lane.state.learnt_rpm, lane.state.blocked_until) == (8, 650, 0)
    assert (lane.view.breaker, lane.view.rate_limited) == ("closed", 0)


def test_frequent_overloads_decrease_concurrency_by_a_fifth_once_for_all_calls_under_way():
    """More than five, and more than one for three successes; later calls need evidence of their own."""
    lane = Lane().settles(CallOutcome.OK, 9).later(1)
    before = lane.state.concurrency
    lane.settles(CallOutcome.OVERLOADED, 8, age=0.5)
    assert lane.state.concurrency == before
    lane.settles(CallOutcome.OVERLOADED, 8, age=0.5)
    assert lane.state.concurrency == 0.8 * before
    lane.later(1).settles(CallOutcome.OVERLOADED, 5)
    assert lane.state.concurrency == 0.8 * before
    assert lane.settles(CallOutcome.OVERLOADED).state.concurrency == 0.8 * 0.8 * before


def test_overloads_and_nothing_else_open_the_breaker_and_its_probes_back_off():
    """Twenty in a row: one second, two, four, up to the breaker's own; a success closes it."""
    lane = Lane().settles(CallOutcome.OVERLOADED, 19)
    assert lane.view.breaker == "closed"
    pauses = []
    for _ in range(7):
        lane.settles(CallOutcome.OVERLOADED)
        pauses.append(lane.state.open_until - lane.now)
        lane.later(pauses[-1])
        assert lane.asks(5).granted == 1
    assert pauses == [1, 2, 4, 8, 16, 30, 30]
    assert lane.view.message == "circuit breaker open after 26 consecutive failures; probe in flight"
    assert lane.settles(CallOutcome.OK).view.breaker == "closed"
    assert lane.settles(CallOutcome.OVERLOADED, 19).view.breaker == "closed"


def test_a_rate_is_learnt_where_no_header_advertises_one():
    """The first refusal sets the learnt rate to the measured 600 per minute; successes raise it again."""
    lane = Lane()
    for _ in range(50):
        lane.later(0.1).settles(CallOutcome.OK)
    lane.settles(CallOutcome.RATE_LIMITED, retry_after=1.0)
    learnt = lane.state.learnt_rpm
    assert 0.95 * 600 < learnt < 1.05 * 600
    lane.later(2).asks(50)
    assert lane.later(1).settles(CallOutcome.OK).state.learnt_rpm == pytest.approx(1.05 * learnt)
    assert lane.settles(CallOutcome.OK).state.learnt_rpm == pytest.approx(1.05 * learnt)


def test_near_a_refused_rate_growth_is_slow():
    """The rate below the refused one is reached quickly; well above it growth is fast again."""
    lane = Lane()
    lane.state = replace(lane.state, learnt_rpm=720.0, cut_at=START - 60, oks_since=START)
    for _ in range(50):
        lane.later(0.1).settles(CallOutcome.OK)
    refused = lane.settles(CallOutcome.RATE_LIMITED, retry_after=1.0).state.refused_rpm
    assert refused == 0.9 * 720
    assert lane.state.learnt_rpm == pytest.approx(600, rel=0.05)
    lane.later(2).asks(50)
    lane.state = replace(lane.state, learnt_rpm=refused)
    assert lane.later(1).settles(CallOutcome.OK).state.learnt_rpm == pytest.approx(1.001 * refused)
    lane.state = replace(lane.state, learnt_rpm=1.2 * refused)
    assert lane.later(1).settles(CallOutcome.OK).state.learnt_rpm == pytest.approx(1.05 * 1.2 * refused)


def test_a_refusal_with_retry_after_lowers_the_learnt_rate_and_blocks_only_if_that_does_not_help():
    """Calls granted before the decrease, or in its burst, count for nothing; the fourth one blocks."""
    lane = Lane()
    lane.state = replace(lane.state, learnt_rpm=600.0, cut_at=START - 60, oks_since=START)
    for _ in range(50):
        lane.later(0.1).settles(CallOutcome.OK)
    rates = []
    for _ in range(3):
        lane.later(0.3).settles(CallOutcome.RATE_LIMITED, 5, retry_after=5.0)
        rates.append(lane.state.learnt_rpm)
    assert rates == pytest.approx([0.9 * 600, 0.9 * 0.8 * 600, 0.9 * 0.8 * 0.6 * 600])
    assert lane.state.blocked_until == 0
    concurrency = lane.state.concurrency
    lane.later(0.3).settles(CallOutcome.RATE_LIMITED, retry_after=5.0)
    assert (lane.state.blocked_until, lane.state.concurrency) == (lane.now + 5.0, concurrency / 2)


def test_a_learnt_rate_does_not_grow_before_retry_after_is_over():
    """The provider has asked for fewer calls until then."""
    lane = Lane()
    lane.state = replace(lane.state, learnt_rpm=600.0, cut_at=START - 60, oks=50.0, oks_since=START - 5)
    lane.settles(CallOutcome.RATE_LIMITED, retry_after=5.0).asks(50)
    learnt = lane.state.learnt_rpm
    assert lane.later(4.9).settles(CallOutcome.OK).state.learnt_rpm == learnt
    lane.asks(50)
    assert lane.later(0.2).settles(CallOutcome.OK).state.learnt_rpm > learnt


def test_no_rate_is_learnt_where_one_is_known():
    """A refusal at a known rate has another cause, such as other users of the account."""
    lane = Lane(LanePolicy(rpm=600)).settles(CallOutcome.OK, 20).settles(CallOutcome.RATE_LIMITED)
    assert lane.state.learnt_rpm == 0
