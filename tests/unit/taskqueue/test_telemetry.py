"""Metrics of the task queue: bounded label values, and counters that start at 0."""

from taskqueue import telemetry
from tests.telemetry import measuring


def test_every_counter_starts_at_zero():
    """An alert on an increase sees the first one."""
    with measuring() as measured:
        telemetry.begin()
    totals = ("eval_queue_enqueue_total", "eval_queue_ack_total", "eval_queue_claim_total")
    assert {(name, ()) for name in totals} <= measured.after.keys()
    assert {labels for name, labels in measured.after if name == "eval_queue_nack_total"} == {
        ("retry",),
        ("dlq",),
    }
    assert sum(measured[name] for name in totals) == 0


def test_claims_are_counted_by_the_name_of_the_former_executor():
    """Instances of one executor share a series, so that restarts do not add any."""
    claimed = "eval_queue_claim_total"
    with measuring() as measured:
        telemetry.count_claims(["host-1-0a1b2c3d", "host-1-4e5f6a7b", "host-2-0a1b2c3d"])
    assert (measured[claimed, "host-1"], measured[claimed, "host-2"]) == (2, 1)
