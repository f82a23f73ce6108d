"""The reconciler's decision: every combination of facts, against invariants of the table."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import product

import pytest

from coordinator.reconcile_decision import EvaluationView, Owner, Published, ReconcileAction, reconcile
from eventlog.lifecycle import ENDED, Phase

BOOLEANS = [field.name for field in fields(EvaluationView) if field.type is bool]
OPENS = {ReconcileAction.RETRY, ReconcileAction.LOST}


def every_view() -> Iterator[EvaluationView]:
    """Enumerate all combinations, possible or not."""
    for phase, published, owner in product(Phase, Published, Owner):
        for values in product([False, True], repeat=len(BOOLEANS)):
            yield EvaluationView(phase, published, owner, **dict(zip(BOOLEANS, values, strict=True)))


EVERY_VIEW = list(every_view())


def views_with(actions: set[ReconcileAction]) -> list[EvaluationView]:
    """Select the views that lead to one of these actions."""
    return [view for view in EVERY_VIEW if reconcile(view) in actions]


def test_every_view_is_enumerated() -> None:
    """Ten phases, three epochs, three owners, five booleans; and each action occurs."""
    assert len(EVERY_VIEW) == 10 * 3 * 3 * 2**5
    assert {reconcile(view) for view in EVERY_VIEW} == set(ReconcileAction)


@pytest.mark.parametrize(
    "untouchable",
    [
        pytest.param(lambda view: view.phase in ENDED, id="ended"),
        pytest.param(lambda view: view.published is Published.NEVER, id="never published"),
        pytest.param(lambda view: view.is_ahead, id="the stream is ahead"),
    ],
)
def test_ended_unpublished_and_unapplied_evaluations_wait(
    untouchable: Callable[[EvaluationView], bool],
) -> None:
    """The storage worker applies what only the stream has."""
    assert {reconcile(view) for view in EVERY_VIEW if untouchable(view)} == {ReconcileAction.WAIT}


def test_attempts_of_an_old_epoch_open_only_after_the_grace_period() -> None:
    """An owner may be re-appending its attempt, with an answer that was paid for."""
    assert all(view.is_settled for view in views_with(OPENS) if view.published is Published.OLD_EPOCH)


def test_attempts_of_the_current_epoch_open_without_grace_period() -> None:
    """None of its writes can have been lost: a coordinator that has just started need not wait."""
    current = [view for view in EVERY_VIEW if view.published is Published.CURRENT_EPOCH]
    for view in current:
        assert reconcile(replace(view, is_settled=False)) is reconcile(replace(view, is_settled=True))


def test_an_attempt_with_a_live_owner_waits() -> None:
    """Except one that requested a retry: it has no owner any more."""
    touched = [
        view
        for view in EVERY_VIEW
        if view.owner is Owner.ALIVE and reconcile(view) is not ReconcileAction.WAIT
    ]
    assert {view.phase for view in touched} == {Phase.RETRYING}
    assert {reconcile(view) for view in touched} == {ReconcileAction.RETRY}


def test_a_requested_retry_opens() -> None:
    """It depends on neither owner nor queue."""
    assert all(view.phase is Phase.RETRYING for view in views_with({ReconcileAction.RETRY}))
    due = [
        view
        for view in EVERY_VIEW
        if view.phase is Phase.RETRYING and view.is_settled and not view.is_ahead
    ]
    assert {reconcile(view) for view in due if view.published is not Published.NEVER} == {
        ReconcileAction.RETRY
    }


def test_lost_means_without_live_owner() -> None:
    """Its owner is dead, its claim was lost, or it was published in an old epoch."""
    for view in views_with({ReconcileAction.LOST}):
        assert view.owner is Owner.LOST or view.claimed_in_row or view.published is Published.OLD_EPOCH
        assert view.phase is not Phase.RETRYING


@pytest.mark.parametrize("action", [ReconcileAction.PUBLISH, ReconcileAction.ENQUEUE])
def test_an_attempt_is_published_again_only_if_unclaimed(action: ReconcileAction) -> None:
    """In the current epoch, unclaimed in the stream and in Postgres."""
    for view in views_with({action}):
        assert view.published is Published.CURRENT_EPOCH
        assert view.owner is Owner.NONE
        assert not view.claimed_in_row
        assert view.has_opening is (action is ReconcileAction.ENQUEUE)


def test_a_task_is_enqueued_only_if_the_queue_is_drained() -> None:
    """While the queue holds tasks of the batch, its own may be among them."""
    assert all(view.is_drained for view in views_with({ReconcileAction.ENQUEUE}))


def test_no_evaluation_waits_for_ever() -> None:
    """Once all is applied, settled and drained, only ended, unpublished and owned evaluations wait."""
    at_rest = [view for view in EVERY_VIEW if not view.is_ahead and view.is_settled and view.is_drained]
    for view in at_rest:
        if reconcile(view) is ReconcileAction.WAIT:
            assert view.phase in ENDED or view.published is Published.NEVER or view.owner is Owner.ALIVE


def test_the_grace_period_only_delays_the_action() -> None:
    """An attempt that opens after it has waited until then."""
    for view in views_with(OPENS):
        if view.published is Published.OLD_EPOCH:
            assert reconcile(replace(view, is_settled=False)) is ReconcileAction.WAIT


QUEUED = EvaluationView(Phase.QUEUED, Published.CURRENT_EPOCH)
RUNNING = EvaluationView(Phase.RUNNING, Published.CURRENT_EPOCH, Owner.ALIVE, claimed_in_row=True)
UNCLAIMED = replace(RUNNING, owner=Owner.NONE)
LOST_CLAIM = replace(UNCLAIMED, published=Published.OLD_EPOCH)
EXAMPLES = [
    ("not published yet", replace(QUEUED, published=Published.NEVER), ReconcileAction.WAIT),
    ("its task is queued", QUEUED, ReconcileAction.WAIT),
    ("opened, and not published", replace(QUEUED, has_opening=False), ReconcileAction.PUBLISH),
    ("published, and its task is missing", replace(QUEUED, is_drained=True), ReconcileAction.ENQUEUE),
    ("claimed, and not yet applied in Postgres", replace(QUEUED, owner=Owner.ALIVE), ReconcileAction.WAIT),
    ("claimed by an executor that died at once", replace(QUEUED, owner=Owner.LOST), ReconcileAction.LOST),
    ("its owner is alive", RUNNING, ReconcileAction.WAIT),
    ("its owner is dead or hung", replace(RUNNING, owner=Owner.LOST), ReconcileAction.LOST),
    (
        "its owner is dead, after closing it",
        replace(RUNNING, owner=Owner.LOST, is_ahead=True),
        ReconcileAction.WAIT,
    ),
    (
        "Redis lost its data, within the grace period",
        replace(LOST_CLAIM, is_settled=False),
        ReconcileAction.WAIT,
    ),
    (
        "Redis lost its data, and its owner re-appended it",
        replace(RUNNING, published=Published.OLD_EPOCH),
        ReconcileAction.WAIT,
    ),
    ("Redis lost its data, and its owner is gone", LOST_CLAIM, ReconcileAction.LOST),
    (
        "Redis lost its data before it was claimed",
        replace(QUEUED, published=Published.OLD_EPOCH),
        ReconcileAction.LOST,
    ),
    ("only its claim was lost", UNCLAIMED, ReconcileAction.LOST),
    ("a retry is due", EvaluationView(Phase.RETRYING, Published.CURRENT_EPOCH), ReconcileAction.RETRY),
    ("it has ended", EvaluationView(Phase.FAILED, Published.OLD_EPOCH, Owner.LOST), ReconcileAction.WAIT),
]


@pytest.mark.parametrize(("example", "view", "action"), EXAMPLES, ids=[row[0] for row in EXAMPLES])
def test_the_table_by_example(example: str, view: EvaluationView, action: ReconcileAction) -> None:
    """The rows of the table in the module's docstring."""
    assert reconcile(view) is action, example
