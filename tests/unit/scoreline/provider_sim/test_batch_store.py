"""The state of a message batch as a function of time."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from scoreline.provider_sim.batch_store import BatchSchedule, SimulatedBatch, course_of
from scoreline.provider_sim.settings import BatchSettings

START = datetime(2026, 1, 1, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def batch(course: BatchSchedule, size: int = 1_000) -> SimulatedBatch:
    made = SimulatedBatch("b", course, Random(1))
    for i in range(size):
        made.add(b'{"custom_id":"%d"}' % i, sound=i % 10 > 0)
    return made


def test_a_batch_ends_when_it_is_due():
    """Its counts change only then, and invalid requests have errored."""
    made = batch(course_of(BatchSettings(batch_seconds=10), START))
    assert made.course.status(after(9.9)) == "in_progress"
    assert made.counts(after(9.9)) == {"processing": 1_000}
    assert made.course.status(after(10)) == "ended"
    assert made.counts(after(10)) == {"succeeded": 900, "errored": 100}
    made.close()


def test_a_canceled_batch_keeps_its_results():
    """It is canceling for a moment, then ended, with the rest canceled."""
    made = batch(replace(course_of(BatchSettings(batch_seconds=10), START), canceled=after(3)))
    assert made.course.status(after(3.5)) == "canceling"
    assert made.course.status(after(4)) == "ended"
    assert made.counts(after(4))["canceled"] == pytest.approx(700, abs=50)
    made.close()


def test_requests_not_processed_in_time_expire():
    """The batch takes longer than its time limit."""
    made = batch(course_of(BatchSettings(batch_seconds=10, batch_expiry=5), START))
    assert made.course.ended == after(5)
    assert made.counts(after(5))["expired"] == pytest.approx(500, abs=50)
    made.close()


def test_outcomes_come_in_the_configured_shares():
    """They are errored, expired and canceled, in a batch that was not canceled."""
    made = batch(course_of(BatchSettings(batch_errored=0.2, batch_expired=0.1, batch_canceled=0.1), START))
    counts = made.counts(after(99))
    assert counts["errored"] == pytest.approx(260, abs=50)
    assert counts["expired"] == pytest.approx(100, abs=40)
    assert counts.total() == 1_000
    made.close()


def test_results_come_once_each_and_out_of_order():
    """They are in order of completion; the counts agree with them."""
    made = batch(course_of(BatchSettings(batch_errored=0.2), START))
    results = [(item["custom_id"], outcome) for item, outcome in made.results()]
    names = [name for name, _ in results]
    assert sorted(names, key=int) == [str(i) for i in range(1_000)]
    assert names != sorted(names, key=int)
    assert sum(outcome == "errored" for _, outcome in results) == made.counts(after(99))["errored"]
    made.close()
