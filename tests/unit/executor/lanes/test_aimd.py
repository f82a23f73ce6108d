"""The throughput of four executors against a provider of 3,000 calls a minute, in virtual time.

The provider is a bucket that holds one second of its rate; calls take 0.3 to 0.8 s.
"""

from bisect import bisect_right
from random import Random
from typing import Any

import pytest

from executor.lanes.contract import LanePolicy
from executor.lanes.gcra import BURST
from tests.unit.executor.lanes.simulated_fleet import START, Fleet, Provider

RPM, TPM = 3_000.0, 300_000.0


def most_in_a_second(starts: list[float]) -> int:
    return max(bisect_right(starts, start + 1.0) - at for at, start in enumerate(starts))


@pytest.mark.parametrize("seed", [1, 2])
def test_a_known_limit_is_used_up_from_a_cold_start_and_never_overstepped(seed):
    """98 % of the provider's limit for a minute is used, and no call is refused."""
    fleet = Fleet(Provider(Random(seed), rpm=RPM), LanePolicy(rpm=RPM))
    fleet.run(60)
    assert fleet.provider.served_between(0, 60) >= 0.98 * RPM
    assert fleet.provider.refused == []


@pytest.mark.parametrize("seed", [1, 2])
def test_a_limit_that_only_headers_advertise_is_used_up_as_well(seed):
    """The first answers carry the limit."""
    fleet = Fleet(Provider(Random(seed), rpm=RPM, reports_limits=True), LanePolicy())
    fleet.run(60)
    assert fleet.provider.served_between(0, 60) >= 0.97 * RPM
    assert len(fleet.provider.refused) <= 0.01 * len(fleet.provider.starts)


@pytest.mark.parametrize("estimate", [40.0, 1_000.0])
def test_tokens_are_used_up_though_they_were_estimated_five_times_wrong(estimate):
    """Tokens per call are learnt from the first calls, before many are granted."""
    fleet = Fleet(Provider(Random(3), tpm=TPM), LanePolicy(tpm=TPM), estimate=estimate)
    fleet.run(60)
    assert fleet.provider.tokens_between(0, 60) >= 0.98 * TPM
    assert fleet.provider.refused == []


def test_tokens_that_only_headers_limit_are_used_up_as_well():
    """Also where the policy gives no limit."""
    fleet = Fleet(Provider(Random(4), tpm=TPM, reports_limits=True), LanePolicy(), estimate=40.0)
    fleet.run(60)
    assert fleet.provider.tokens_between(0, 60) >= 0.97 * TPM
    assert len(fleet.provider.refused) <= 0.01 * len(fleet.provider.starts)


@pytest.mark.parametrize(
    ("retry_after", "share", "refused"),
    [(None, 0.98, 0.05), (1.0, 0.98, 0.01), (5.0, 0.97, 0.01), (30.0, 0.85, 0.01)],
)
def test_an_unadvertised_limit_is_found(retry_after, share, refused):
    """AIMD finds the limit from the calls that succeed; Retry-After delays the call that was refused.

    Without Retry-After, several refusals are needed to distinguish a limit from noise.
    """
    for seed in (5, 6, 7):
        fleet = Fleet(Provider(Random(seed), rpm=RPM, retry_after=retry_after), LanePolicy())
        fleet.run(60)
        assert fleet.provider.served_between(0, 60) >= share * RPM
        assert len(fleet.provider.refused) <= refused * len(fleet.provider.starts)


@pytest.mark.parametrize("rpm", [600.0, 1_200.0])
def test_a_small_limit_is_found_from_retry_after(rpm):
    """The fewer calls a provider allows, the less is known at its first refusal."""
    for seed in (5, 6, 7):
        fleet = Fleet(Provider(Random(seed), rpm=rpm, retry_after=1.0), LanePolicy())
        fleet.run(60)
        assert fleet.provider.served_between(0, 60) >= 0.97 * rpm
        assert len(fleet.provider.refused) <= 0.03 * len(fleet.provider.starts)


def test_a_provider_that_refuses_all_calls_for_a_time_is_hardly_called_in_it():
    """Where a lower rate does not help, Retry-After blocks the lane: a fixed window's quota is used up."""
    provider = Provider(Random(9), rpm=RPM, retry_after=30.0)
    fleet = Fleet(provider, LanePolicy())
    fleet.run(20)
    assert provider.requests is not None
    provider.requests.per_second = 0.001
    provider.requests.level = 0.0
    before = len(provider.starts)
    fleet.run(29)
    assert len(provider.starts) - before <= 60


KNOWLEDGE: dict[str, tuple[LanePolicy, dict[str, Any]]] = {
    "configured": (LanePolicy(rpm=RPM), {}),
    "advertised": (LanePolicy(), {"reports_limits": True}),
    "unknown": (LanePolicy(max_concurrency=16), {}),
}
"""How a lane knows the rate of a provider."""


@pytest.mark.parametrize("share", [0.02, 0.05, 0.15])
@pytest.mark.parametrize("kind", ["overloaded", "stray"])
@pytest.mark.parametrize("known", KNOWLEDGE)
def test_random_overloads_and_stray_refusals_cost_only_the_calls_they_meet(share, kind, known):
    """At least 95 % of what the provider would serve, which is what it serves without them."""
    policy, fields = KNOWLEDGE[known]
    rpm = RPM if known != "unknown" else None
    still = Fleet(Provider(Random(1), rpm=rpm, **fields), policy)
    rough = Fleet(Provider(Random(1), rpm=rpm, **fields | {kind: share}), policy)
    still.run(20)
    rough.run(20)
    served = rough.provider.served_between(0, 20)
    assert served >= 0.95 * (1 - share) * still.provider.served_between(0, 20)


def test_calls_beyond_the_capacity_of_a_provider_are_the_smaller_part_and_it_is_used():
    """AIMD keeps calls in flight near the number above which a provider answers with 529."""
    fleet = Fleet(Provider(Random(5), capacity=20), LanePolicy())
    fleet.run(30)
    served = fleet.provider.served_between(10, 30)
    assert served >= 0.85 * 20 * 20 / 0.55
    assert len(fleet.provider.rejected) <= served


@pytest.mark.parametrize("kind", ["overloaded", "stray"])
def test_a_provider_that_rejects_everything_is_not_hammered_and_then_used_within_seconds(kind):
    """A minute of rejects meets a call a second at most; five seconds after a success all is as before."""
    always: Any = {kind: 1.0}
    provider = Provider(Random(6), rpm=RPM, **always)
    fleet = Fleet(provider, LanePolicy(rpm=RPM))
    fleet.run(60)
    assert len(provider.starts) <= 60
    setattr(provider, kind, 0.0)
    fleet.run(50)
    first = min(at for at, _ in provider.served) - START
    assert first <= 60 + 31
    assert provider.served_between(first + 5, first + 15) >= 0.95 * RPM / 6


def test_after_an_outage_one_probe_at_a_time_then_the_rate_and_no_herd():
    """During an outage of 30 s there is one probe per breaker period, and the first answer closes it."""
    provider = Provider(Random(6), rpm=RPM, down=(START + 10, START + 40))
    fleet = Fleet(provider, LanePolicy(rpm=RPM, breaker_seconds=5.0))
    fleet.run(100)
    during = [start - START for start in provider.starts if 12.5 < start - START < 40]
    first = min(at - START for at, _ in provider.served if at - START >= 40)
    after = [start for start in provider.starts if start - START >= first]
    assert 4 <= len(during) <= 6
    assert first <= 40 + 5.0 + 0.2
    assert most_in_a_second(after) <= RPM / 60 * (1 + BURST) + 1
    assert provider.refused == []
    assert provider.served_between(50, 100) >= 0.98 * RPM * 50 / 60


def test_slow_calls_do_not_keep_a_lane_from_its_rate():
    """Calls of ten seconds need five hundred in flight, more than the headers ever show as remaining."""
    provider = Provider(Random(7), rpm=RPM, reports_limits=True, latency=(8.0, 12.0))
    fleet = Fleet(provider, LanePolicy())
    fleet.run(100)
    assert provider.served_between(70, 100) >= 0.95 * RPM / 2
    assert provider.refused == []


def test_a_falling_limit_is_followed():
    """When a provider halves its rate, calls halve, and refusals soon become rare again."""
    provider = Provider(Random(8), rpm=RPM)
    fleet = Fleet(provider, LanePolicy())
    fleet.run(30)
    assert provider.requests is not None
    provider.requests.per_second /= 2
    fleet.run(60)
    late = [at for at in provider.refused if at - START > 60]
    assert len(late) <= 0.05 * provider.served_between(60, 90)
    assert provider.served_between(60, 90) >= 0.7 * RPM / 4
