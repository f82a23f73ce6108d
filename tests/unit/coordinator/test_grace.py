"""The grace after an epoch change: for whom it waits, and what ends it before its time."""

import pytest

from coordinator.grace import Grace

LENGTH = 10.0
BEFORE, AFTER, LOST = "a-1", "a-2", "b-2"
"""Before a restart; after it, with the data; after it, without."""


class Observed:
    """A grace of one shard, and a coordinator that observes it every second."""

    def __init__(self) -> None:
        self.grace = Grace(LENGTH)
        self.now = 0.0

    def look(self, epoch: str, **confirmed: str) -> bool:
        """Observe an epoch and the executors registered; returns whether the grace is over."""
        self.grace.begin(self.now)
        self.grace.observe_epochs([epoch], self.now)
        self.grace.observe_roster({name: (it,) for name, it in confirmed.items()}, self.now)
        return self.grace.is_over(0, self.now)

    def fail(self, seconds: int) -> None:
        """Try to observe while Redis is away."""
        for _ in range(seconds):
            self.now += 1
            self.grace.begin(self.now)

    def settled(self, **confirmed: str) -> "Observed":
        """Observe until the first grace is over."""
        while not self.look(BEFORE, **confirmed):
            self.now += 1
        return self


@pytest.fixture
def observed() -> Observed:
    return Observed().settled(one=BEFORE, two=BEFORE)


def test_it_ends_when_every_executor_has_confirmed(observed: Observed) -> None:
    """Not with the first one."""
    assert not observed.look(AFTER, one=BEFORE, two=BEFORE)
    assert not observed.look(AFTER, one=AFTER, two=BEFORE)
    assert observed.look(AFTER, one=AFTER, two=AFTER)


def test_once_over_it_stays_over(observed: Observed) -> None:
    """An executor that starts later has nothing of an older epoch."""
    assert observed.look(AFTER, one=AFTER, two=AFTER)
    assert observed.look(AFTER, one=AFTER, two=AFTER, three="")


def test_a_loss_of_the_data_waits_for_the_whole_grace(observed: Observed) -> None:
    """Everything was lost with the random half, so that a confirmation ends nothing."""
    assert not observed.look(LOST, one=LOST, two=LOST)
    observed.now += LENGTH - 0.1
    assert not observed.look(LOST, one=LOST, two=LOST)
    observed.now += 0.1
    assert observed.look(LOST, one=LOST, two=LOST)


def test_an_executor_that_never_confirms_costs_the_whole_grace(observed: Observed) -> None:
    """It may be of an older release, or cut off."""
    for _ in range(10):
        assert not observed.look(AFTER, one=AFTER, two="")
        observed.now += 1
    assert observed.look(AFTER, one=AFTER, two="")


def test_an_executor_that_does_not_return_costs_the_whole_grace(observed: Observed) -> None:
    """Its heartbeat was lost, or expired while Redis was away: that it is not listed proves nothing."""
    for _ in range(10):
        assert not observed.look(AFTER, one=AFTER)
        observed.now += 1
    assert observed.look(AFTER, one=AFTER)


def test_the_roster_outlives_an_outage_longer_than_heartbeats(observed: Observed) -> None:
    """All heartbeats have expired: those seen before the outage are awaited none the less."""
    observed.fail(60)
    assert not observed.look(AFTER)
    assert not observed.look(AFTER, one=AFTER)
    assert observed.look(AFTER, one=AFTER, two=AFTER)


def test_an_executor_that_was_not_seen_before_must_confirm_too(observed: Observed) -> None:
    """It is registered now, so that it may have claimed before."""
    assert not observed.look(AFTER, one=AFTER, two=AFTER, three="")
    assert observed.look(AFTER, one=AFTER, two=AFTER, three=AFTER)


def test_an_executor_that_left_long_before_is_not_awaited(observed: Observed) -> None:
    """One that left just now is: it may still be sending its last events."""
    observed.now += 1
    observed.look(BEFORE, one=BEFORE)
    assert not observed.look(AFTER, one=AFTER)
    observed = Observed().settled(one=BEFORE, two=BEFORE)
    for _ in range(11):
        observed.now += 1
        observed.look(BEFORE, one=BEFORE)
    assert observed.look(AFTER, one=AFTER)


def test_a_coordinator_that_started_after_the_change_waits_for_the_whole_grace() -> None:
    """It does not know who was there."""
    observed = Observed()
    assert not observed.look(AFTER, one=AFTER)
    observed.now = LENGTH - 0.1
    assert not observed.look(AFTER, one=AFTER)
    observed.now = LENGTH
    assert observed.look(AFTER, one=AFTER)


def test_a_coordinator_that_started_just_before_the_change_waits_for_the_whole_grace() -> None:
    """Its first grace was not over: the change before may have been one that it knows nothing of."""
    observed = Observed()
    observed.look(BEFORE, one=BEFORE)
    assert not observed.look(AFTER, one=AFTER)


def test_a_coordinator_that_did_not_look_for_long_waits_for_the_whole_grace(observed: Observed) -> None:
    """It was frozen, or another one led: executors may have come meanwhile."""
    observed.now += LENGTH
    assert not observed.look(AFTER, one=AFTER, two=AFTER)


def test_a_second_restart_waits_for_those_the_first_one_waited_for(observed: Observed) -> None:
    """That nothing was heard of an executor in between does not make it forgotten."""
    observed.look(AFTER, one=AFTER)
    observed.now += LENGTH - 1
    observed.look(AFTER, one=AFTER)
    assert not observed.look("a-3", one="a-3")
    assert observed.look("a-3", one="a-3", two="a-3")


def test_a_restart_after_a_loss_waits_for_the_whole_grace(observed: Observed) -> None:
    """The loss was not over."""
    observed.look(LOST, one=LOST, two=LOST)
    assert not observed.look("b-3", one="b-3", two="b-3")


def test_nobody_to_confirm_is_no_confirmation() -> None:
    """Without any executor the time decides."""
    observed = Observed().settled()
    assert not observed.look(AFTER)
    observed.now += LENGTH
    assert observed.look(AFTER)


def test_each_shard_is_confirmed_by_itself() -> None:
    """An executor whose tails of one shard are not yet back holds up that one alone."""
    grace, before = Grace(LENGTH), ("a-1", "b-1")
    for now in range(11):
        grace.begin(now)
        grace.observe_epochs(before, now)
        grace.observe_roster({"one": before}, now)
    grace.observe_epochs(("a-2", "b-2"), 11)
    grace.observe_roster({"one": ("a-2", "")}, 11)
    assert (grace.is_over(0, 11), grace.is_over(1, 11), grace.all_over(11)) == (True, False, False)
    assert grace.needs_roster(11.1)
    grace.observe_roster({"one": ("a-2", "b-2")}, 11.1)
    assert grace.all_over(11.1)
    assert not grace.needs_roster(11.2)
