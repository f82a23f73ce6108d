"""Which queue of each batch an executor consumes from next."""

from executor.queue_selector import QueueChoice, QueueSelector, in_queues
from executor.stride_scheduler import EMPTY_PAUSE


def test_a_queue_without_history_is_probed_beside_another():
    """One with tasks gets all turns; an empty one is skipped; if all are, the first empty one is polled."""
    selector, queues = QueueSelector(), {"b": ["first", "second"]}
    assert selector.choose(queues, 0.0) == {"b": QueueChoice("second", ("first",))}
    selector.learn({"first": 1, "second": 2}, {"first": 1, "second": 2}, retry_in={}, now=0.0)
    assert selector.choose(queues, 0.0) == {"b": QueueChoice("first")}
    selector.learn({"first": 2}, {"first": 1}, retry_in={}, now=0.0)
    assert selector.choose(queues, 0.0) == {"b": QueueChoice("second")}
    assert not selector.are_empty(queues["b"], 0.0)
    selector.learn({"second": 1}, {}, retry_in={}, now=EMPTY_PAUSE / 2)
    assert selector.are_empty(queues["b"], EMPTY_PAUSE / 2)
    assert selector.choose(queues, EMPTY_PAUSE / 2) == {"b": QueueChoice("first")}
    assert selector.choose(queues, 2 * EMPTY_PAUSE) == {"b": QueueChoice("second", ("first",))}


def test_a_batch_with_only_closed_queues_is_skipped():
    """Until the first of them opens; a closed queue is not an empty one."""
    selector, queues = QueueSelector(), {"b": ["first", "second"], "other": ["other"]}
    selector.learn({}, {}, retry_in={"first": 2.0, "second": 1.0}, now=0.0)
    assert selector.choose(queues, 0.5) == {"other": QueueChoice("other")}
    assert not selector.are_empty(queues["b"], 0.5)
    assert selector.opens_in(0.5) == 0.5
    assert selector.choose(queues, 1.0) == {"b": QueueChoice("second"), "other": QueueChoice("other")}
    assert selector.opens_in(3.0) == float("inf")


def test_an_empty_queue_that_takes_permits_is_idle_until_it_has_tasks():
    """Its batch counts as empty meanwhile, and acquires no permit."""
    selector, queues = QueueSelector(), {"b": ["queue"]}
    selector.learn({"queue": 2}, {"queue": 1}, retry_in={"queue": 5.0}, metered={"queue"}, now=0.0)
    assert selector.are_empty(queues["b"], 0.0)
    assert selector.choose(queues, 0.0) == {}
    assert selector.idle_queues(0.0) == []
    assert selector.opens_in(0.0) == EMPTY_PAUSE
    assert selector.idle_queues(EMPTY_PAUSE) == ["queue"]
    selector.polled({"queue": 0}, EMPTY_PAUSE)
    assert selector.idle_queues(EMPTY_PAUSE) == []
    selector.polled({"queue": 3}, 2 * EMPTY_PAUSE)
    assert not selector.are_empty(queues["b"], 2 * EMPTY_PAUSE)
    assert selector.choose(queues, 2 * EMPTY_PAUSE) == {"b": QueueChoice("queue")}
    assert selector.idle_queues(9.0) == []


def test_turns_of_batches_become_turns_of_queues():
    """Each probe comes once, before the batch's first turn."""
    choices = {"a": QueueChoice("a2", ("a1",)), "b": QueueChoice("b")}
    assert list(in_queues(["a", "b", "a"], choices)) == ["a1", "a2", "b", "a2"]
