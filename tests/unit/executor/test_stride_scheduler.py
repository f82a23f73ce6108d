"""Stride scheduling among batches: shares by priority, and no share is wasted."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from executor.stride_scheduler import EMPTY_PAUSE, StrideScheduler

PRIORITIES = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2), st.integers(1, 100), min_size=1, max_size=6
)


class Race:
    """Batches with a number of tasks each, and an executor that fetches them."""

    def __init__(self, priorities: dict[str, int], backlog: dict[str, int]) -> None:
        self.priorities = priorities
        self.backlog = dict(backlog)
        self.taken: Counter[str] = Counter()
        self.fairness = StrideScheduler()
        self.now = 0.0

    def ask(self, free: int) -> Counter[str]:
        plan = self.fairness.plan(self.priorities, free, now=self.now)
        assert sum(plan.wanted.values()) <= free
        assert set(plan.wanted) <= set(self.priorities)
        got = Counter({batch: min(asked, self.backlog[batch]) for batch, asked in plan.wanted.items()})
        dry = {batch for batch, asked in plan.wanted.items() if got[batch] < asked}
        self.fairness.record(plan, got, empty=dry, now=self.now)
        for batch, number in got.items():
            self.backlog[batch] -= number
        self.taken += got
        return got


@given(PRIORITIES, st.lists(st.integers(1, 20), min_size=1, max_size=60))
def test_batches_with_tasks_get_their_shares(priorities, rounds):
    """However slots come free, the lag of a batch behind its share is bounded."""
    race = Race(priorities, dict.fromkeys(priorities, 10**6))
    for free in rounds:
        assert race.ask(free).total() == free
        total, weights = race.taken.total(), sum(priorities.values())
        for batch, priority in priorities.items():
            fair = total * priority / weights
            assert abs(race.taken[batch] - fair) <= len(priorities)


@given(PRIORITIES, st.data())
def test_unused_shares_go_to_other_batches(priorities, data):
    """While any batch has a task, a few fetches fill every slot."""
    backlog = {batch: data.draw(st.integers(0, 40)) for batch in priorities}
    free = data.draw(st.integers(1, 20))
    race = Race(priorities, backlog)
    for _ in range(len(priorities) + 1):
        free -= race.ask(free).total()
        if not free:
            break
    assert not free or not any(race.backlog.values())


@given(PRIORITIES, st.integers(1, 4), st.data())
def test_no_batch_starves(priorities, free, data):
    """A batch with one task gets its turn within the number of rounds that the weights allow."""
    patient = data.draw(st.sampled_from(sorted(priorities)))
    race = Race(priorities, dict.fromkeys(priorities, 10**6) | {patient: 1})
    for _ in range(sum(priorities.values()) + len(priorities)):
        race.ask(free)
        race.now += EMPTY_PAUSE / 7
    assert race.taken[patient] == 1


@given(PRIORITIES, st.integers(1, 4))
def test_empty_batches_are_polled_in_turn(priorities, free):
    """With fewer slots than batches, too: a new task is found."""
    race, asked = Race(priorities, dict.fromkeys(priorities, 0)), set()
    for _ in range(2 * len(priorities)):
        plan = race.fairness.plan(priorities, free, now=race.now)
        asked |= set(plan.wanted)
        race.fairness.record(plan, {}, empty=plan.wanted, now=race.now)
        race.now += 0.01
    assert asked == set(priorities)
    assert race.fairness.plan(priorities, free, now=race.now).may_wait


def test_a_new_batch_has_saved_up_no_turns():
    """A batch that joins late shares from now on; it does not catch up."""
    race = Race({"old": 1}, {"old": 10**6, "new": 10**6})
    race.ask(1_000)
    race.priorities = {"old": 1, "new": 1}
    assert race.ask(10) == Counter(old=5, new=5)


def test_an_empty_batch_has_saved_up_no_turns():
    """A batch that had no tasks for long shares from now on; it does not catch up."""
    race = Race({"busy": 1, "idle": 1}, {"busy": 10**6, "idle": 0})
    for _ in range(50):
        race.ask(10)
        race.now += EMPTY_PAUSE
    race.backlog["idle"] = 10**6
    race.now += EMPTY_PAUSE
    race.taken.clear()
    race.ask(10)
    assert abs(race.taken["busy"] - race.taken["idle"]) <= 10 / 2
    for _ in range(10):
        race.ask(10)
    assert abs(race.taken["busy"] - race.taken["idle"]) <= 10


def test_an_empty_batch_is_polled_again_after_a_pause():
    """New tasks are found after a moment."""
    race = Race({"a": 1, "b": 1}, {"a": 10**6, "b": 0})
    race.ask(4)
    assert "b" not in race.fairness.plan(race.priorities, 4, now=race.now).wanted
    assert "b" in race.fairness.plan(race.priorities, 4, now=race.now + EMPTY_PAUSE).wanted


def test_without_batches_the_plan_is_empty():
    """No batch, no turn."""
    assert StrideScheduler().plan({}, 5, now=0.0).wanted == {}


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 3))
def test_batches_that_share_a_limit_share_it_by_priority(one, other, permits):
    """Two batches get a few permits a round between them, while a third is unlimited."""
    fairness, taken = StrideScheduler(), Counter[str]()
    priorities = {"a": one, "b": other, "fast": 1}
    for _ in range(400):
        fast = fairness.plan(priorities, 20, now=0.0, closed={"a", "b"})
        fairness.record(fast, fast.wanted, empty=(), now=0.0)
        plan = fairness.plan(priorities, 20, now=0.0)
        got = Counter([batch for batch in plan.turns if batch != "fast"][:permits])
        taken += got
        fairness.record(plan, got, empty=(), now=0.0)
    assert taken.total() == 400 * permits
    assert abs(taken["a"] / taken.total() - one / (one + other)) < 0.02
