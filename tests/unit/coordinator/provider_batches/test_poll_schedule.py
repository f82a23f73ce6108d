"""Poll schedules: the delay grows to a limit, and is never shorter than Retry-After."""

from datetime import timedelta

from coordinator.provider_batches.poll_schedule import PollSchedule
from coordinator.provider_batches.settings import ProviderBatchSettings

SETTINGS = ProviderBatchSettings(
    first_poll=timedelta(seconds=4), poll_factor=2.0, longest_poll=timedelta(seconds=10)
)
NAME = "msgbatch_1"


def delays(schedule: PollSchedule, times: int) -> list[int]:
    """Return the next delays of a name, to the second."""
    found = []
    for _ in range(times):
        schedule.wait(NAME, 0.0)
        found.append(next(second for second in range(100) if schedule.is_due(NAME, float(second))))
    return found


def test_a_new_name_is_due_at_once():
    """After a restart everything is polled."""
    assert PollSchedule(SETTINGS, lambda: 1.0).is_due(NAME, 0.0)


def test_the_delay_grows_to_its_limit():
    """Half of it is fixed and half is jitter."""
    assert delays(PollSchedule(SETTINGS, lambda: 1.0), 4) == [4, 8, 10, 10]
    assert delays(PollSchedule(SETTINGS, lambda: 0.0), 4) == [2, 4, 5, 5]


def test_a_longer_retry_after_wins():
    """A shorter one does not shorten the delay."""
    schedule = PollSchedule(SETTINGS, lambda: 1.0)
    schedule.wait(NAME, 0.0, at_least=timedelta(seconds=30))
    assert [schedule.is_due(NAME, now) for now in (29.0, 30.0)] == [False, True]
    schedule.wait(NAME, 0.0, at_least=timedelta(seconds=1))
    assert [schedule.is_due(NAME, now) for now in (7.0, 8.0)] == [False, True]


def test_a_reset_name_is_due_and_begins_with_the_shortest_delay():
    """Progress of a batch is a reason to poll it often again."""
    schedule = PollSchedule(SETTINGS, lambda: 1.0)
    delays(schedule, 3)
    schedule.reset(NAME)
    assert schedule.is_due(NAME, 0.0)
    assert delays(schedule, 1) == [4]


def test_only_retained_names_keep_their_delay():
    """Names of batches that have ended are dropped."""
    schedule = PollSchedule(SETTINGS, lambda: 1.0)
    for name in ("kept", "gone"):
        schedule.wait(name, 0.0)
    schedule.retain({"kept", "new"})
    assert [schedule.is_due(name, 1.0) for name in ("kept", "gone")] == [False, True]


def test_a_poll_is_not_later_than_the_time_of_a_decision():
    """Retry-After has precedence."""
    schedule = PollSchedule(ProviderBatchSettings(first_poll=timedelta(seconds=40)), lambda: 1.0)
    schedule.wait(NAME, 0.0, at_most=timedelta(seconds=5))
    assert (schedule.is_due(NAME, 4.9), schedule.is_due(NAME, 5.0)) == (False, True)
    schedule.wait(NAME, 0.0, at_most=timedelta(seconds=5), at_least=timedelta(seconds=9))
    assert (schedule.is_due(NAME, 8.9), schedule.is_due(NAME, 9.0)) == (False, True)
