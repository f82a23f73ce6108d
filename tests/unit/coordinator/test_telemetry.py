"""Metrics of a coordinator: the outcome of a batch, the type of its targets, and opened attempts."""

import pytest

from coordinator import telemetry
from coordinator.telemetry import mode_of, status_of
from domain.batch_spec import BatchSpec, TargetSpec
from eventlog.codec import encode
from projections.folds.progress import Progress
from projections.ledger.contract import OpenedAttempt
from tests.builders import EVALUATION, event
from tests.telemetry import measuring


@pytest.mark.parametrize(
    ("state", "completed", "status"),
    [
        ("completed", 4, "success"),
        ("completed", 3, "partial"),
        ("completed", 0, "failed"),
        ("cancelled", 3, "cancelled"),
        ("expired", 0, "expired"),
    ],
)
def test_a_finished_batch_has_a_status(state, completed, status):
    """The status depends on state, verdicts and dead letters."""
    assert status_of(state, completed=completed, total=4) == status


def test_a_batch_with_targets_of_several_types_is_mixed():
    """A batch with targets of one type has that type as its mode."""
    one, same, other = (TargetSpec(kind, kind) for kind in ("python", "python", "http"))
    assert [mode_of(BatchSpec("b", targets)) for targets in ((one, same), (one, other))] == [
        "python",
        "mixed",
    ]


def test_opened_attempts_are_counted_by_reason_and_endings_as_failed():
    """The first attempt of an evaluation is no retry; an ending without a run has no good verdict."""
    openings = (event("queued"), event("queued:lost", attempt=2), event("cancelled", attempt=2))
    opened = [
        OpenedAttempt(EVALUATION, ((each, encode(each)),), "epoch", was_published=True, progress=Progress())
        for each in openings
    ]
    with measuring() as measured:
        telemetry.begin()
        telemetry.count_opened(opened)
    reasons = [measured["eval_coordinator_opened_total", why] for why in ("lost", "retry", "operator")]
    assert reasons == [1, 0, 0]
    assert (measured["eval_batch_tests_total"], measured["eval_batch_tests_failed_total"]) == (1, 1)
