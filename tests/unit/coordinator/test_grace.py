"""The grace period after an epoch change: which executors it waits for, and what ends it early."""

import pytest

from coordinator.grace import Grace

LENGTH = 10.0
BEFORE, AFTER, LOST = "a-1", "a-2", "b-2"
"""Before a restart; after it, with the data; after it, without."""


class Observed:
    """The grace period of one shard, and a coordinator that observes it every second."""

    def __init__(self) -> None:
        self.grace = Grace(LENGTH)
        self.now = 0.0

    def look(self, epoch: str, **confirmed: str) -> bool:
        """Observe an epoch and the registered executors; returns whether the grace period is over."""
        self.grace.begin(self.now)
        self.grace.observe_epochs([epoch], self.now)
        self.grace.observe_roster({name: (it,) for name, it in confirmed.items()}, self.now)
        return self.grace.is_over(0, self.now)

    def fail(self, seconds: int) -> None:
        """Try to observe while Redis is unavailable."""
        for _ in range(seconds):
            self.now += 1
            self.grace.begin(self.now)

    def settled(self, **confirmed: str) -> "Observed":
        """Observe until the first grace period is over."""
        while not self.look(BEFORE, **confirmed):
            self.now += 1
        return self


@pytest.fixture
def observed() -> Observed:
    return Observed().settled(one=BEFORE, two=BEFORE)


def test_it_ends_when_every_executor_has_confirmed(observed: Observed) -> None:
    """The first confirmation alone does not end it."""
    assert not observed.look(AFTER, one=BEFORE, two=BEFORE)
    assert not observed.look(AFTER, one=AFTER, two=BEFORE)
    assert observed.look(AFTER, one=AFTER, two=AFTER)


def test_once_over_it_stays_over(observed: Observed) -> None:
    """An executor that starts later has no events of an older epoch."""
    assert observed.look(AFTER, one=AFTER, two=AFTER)
    assert observed.look(AFTER, one=AFTER, two=AFTER, three="")


def test_data_loss_waits_for_the_whole_grace_period(observed: Observed) -> None:
    """Without the data, confirmations end nothing."""
    assert not observed.look(LOST, one=LOST, two=LOST)
    observed.now += LENGTH - 0.1
    assert not observed.look(LOST, one=LOST, two=LOST)
    observed.now += 0.1
    assert observed.look(LOST, one=LOST, two=LOST)


def test_an_executor_that_never_confirms_costs_the_whole_grace_period(observed: Observed) -> None:
    """It may be of an older release, or partitioned."""
    for _ in range(10):
        assert not observed.look(AFTER, one=AFTER, two="")
        observed.now += 1
    assert observed.look(AFTER, one=AFTER, two="")


def test_an_executor_that_does_not_return_costs_the_whole_grace_period(observed: Observed) -> None:
    """Its heartbeat was lost or has expired, so its absence proves nothing."""
    for _ in range(10):
        assert not observed.look(AFTER, one=AFTER)
        observed.now += 1
    assert observed.look(AFTER, one=AFTER)


def test_the_roster_outlives_an_outage_longer_than_heartbeats(observed: Observed) -> None:
    """After all heartbeats have expired, executors seen before the outage must still confirm."""
    observed.fail(60)
    assert not observed.look(AFTER)
    assert not observed.look(AFTER, one=AFTER)
    assert observed.look(AFTER, one=AFTER, two=AFTER)


def test_a_newly_registered_executor_must_confirm_too(observed: Observed) -> None:
    """It may have claimed before the restart."""
    assert not observed.look(AFTER, one=AFTER, two=AFTER, three="")
    assert observed.look(AFTER, one=AFTER, two=AFTER, three=AFTER)


def test_an_executor_that_left_long_before_is_not_awaited(observed: Observed) -> None:
    """An executor that left just now is: it may still append its last events."""
    observed.now += 1
    observed.look(BEFORE, one=BEFORE)
    assert not observed.look(AFTER, one=AFTER)
    observed = Observed().settled(one=BEFORE, two=BEFORE)
    for _ in range(11):
        observed.now += 1
        observed.look(BEFORE, one=BEFORE)
    assert observed.look(AFTER, one=AFTER)


def test_a_coordinator_started_after_the_change_waits_for_the_whole_grace_period() -> None:
    """It does not know the executors of the old epoch."""
    observed = Observed()
    assert not observed.look(AFTER, one=AFTER)
    observed.now = LENGTH - 0.1
    assert not observed.look(AFTER, one=AFTER)
    observed.now = LENGTH
    assert observed.look(AFTER, one=AFTER)


def test_a_coordinator_started_just_before_the_change_waits_for_the_whole_grace_period() -> None:
    """Its first grace period was not over, so an earlier change may be unknown to it."""
    observed = Observed()
    observed.look(BEFORE, one=BEFORE)
    assert not observed.look(AFTER, one=AFTER)


def test_a_coordinator_without_recent_reads_waits_for_the_whole_grace_period(observed: Observed) -> None:
    """It was suspended or a standby, and executors may have registered meanwhile."""
    observed.now += LENGTH
    assert not observed.look(AFTER, one=AFTER, two=AFTER)


def test_a_second_restart_waits_for_the_executors_of_the_first(observed: Observed) -> None:
    """An executor without a heartbeat between the restarts must still confirm."""
    observed.look(AFTER, one=AFTER)
    observed.now += LENGTH - 1
    observed.look(AFTER, one=AFTER)
    assert not observed.look("a-3", one="a-3")
    assert observed.look("a-3", one="a-3", two="a-3")


def test_a_restart_during_recovery_from_data_loss_waits_for_the_whole_grace_period(
    observed: Observed,
) -> None:
    """The grace period of the data loss was not over."""
    observed.look(LOST, one=LOST, two=LOST)
    assert not observed.look("b-3", one="b-3", two="b-3")


def test_an_empty_roster_confirms_nothing() -> None:
    """Without executors only time ends the grace period."""
    observed = Observed().settled()
    assert not observed.look(AFTER)
    observed.now += LENGTH
    assert observed.look(AFTER)


def test_each_shard_is_confirmed_by_itself() -> None:
    """An executor that has not re-appended the tails of one shard delays only that shard."""
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
