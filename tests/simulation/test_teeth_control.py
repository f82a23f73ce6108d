"""Each mechanism of coordinator and executor removed in turn: the simulator must detect it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from coordinator.attempt_opening import AttemptOpener
from coordinator.attempts import Charges
from coordinator.coordinator import Coordinator
from coordinator.reconciler import Reconciler
from executor.eligible_batches import EligibleBatches
from projections.ledger.contract import DueLink
from projections.ledger.memory import MemoryLedger
from taskqueue.memory import MemoryTaskQueue
from tests.simulation import coordinator, executor
from tests.simulation.profiles import Profile
from tests.simulation.test_teeth import harms
from tests.simulation.world import Harm


async def nothing(*_args: Any, **_named: Any) -> list[Any]:
    """Do nothing."""
    return []


def test_without_the_grace(monkeypatch):
    """An answer that its owner was about to re-append would be paid for again."""
    hasty = replace(coordinator.SETTINGS, grace=timedelta(0))
    monkeypatch.setattr(coordinator, "SETTINGS", hasty)
    assert Harm.DOUBLED in harms(Profile.LOSS, first=280)


def test_without_inspection_of_idle_evaluations(monkeypatch):
    """Evaluations of dead executors would wait for ever."""
    monkeypatch.setattr(Reconciler, "reconcile_when_due", nothing)
    assert Harm.STUCK in harms(Profile.DEATHS)


def test_answers_that_are_not_passed_on(monkeypatch):
    """The next attempt would pay for them again."""
    monkeypatch.setattr("coordinator.attempts.newest_answer", lambda _logged: (None, 0))
    assert Harm.DOUBLED in harms(Profile.CALM)


def test_answers_on_record_that_are_ignored(monkeypatch):
    """An executor that does not replay the stream would call the target again."""
    monkeypatch.setattr("executor.replay._paid_for", lambda _events: (None, {}))
    assert Harm.DOUBLED in harms(Profile.CALM)


def test_retries_without_a_budget(monkeypatch):
    """A case that always fails would be retried for ever."""
    monkeypatch.setattr("coordinator.attempts.charges_of", lambda _logged: Charges())
    monkeypatch.setattr(executor, "KINDS", ("transient",) * 9 + ("answer",))
    assert harms(Profile.CALM)


def test_tasks_that_are_not_taken_over(monkeypatch):
    """Tasks that a dead executor consumed and did not claim would never run."""
    monkeypatch.setattr(MemoryTaskQueue, "claim_stalled", nothing)
    assert Harm.STUCK in harms(Profile.DEATHS)


def test_a_pause_that_is_ignored(monkeypatch):
    """Executors that consume from every batch would start tasks of a paused one."""
    monkeypatch.setattr(EligibleBatches, "_is_eligible", lambda _batches, _entry: True)
    assert harms(Profile.CALM)


def test_groups_that_run_all_at_once(monkeypatch):
    """A dependant would run before the answer that it depends on."""

    async def all_links(ledger: MemoryLedger, batch_id: str, *, limit: int) -> list[DueLink]:
        keys = [key for key in ledger._open(batch_id) if key in ledger._links]
        return [DueLink(key, ledger._links[key]) for key in keys if not ledger._publications[key].epoch][
            :limit
        ]

    monkeypatch.setattr(MemoryLedger, "due_links", all_links)
    assert harms(Profile.CALM)


def test_endings_that_are_not_published(monkeypatch):
    """An executor of an ended attempt would run on as a zombie, and its stream would stay."""
    monkeypatch.setattr(AttemptOpener, "_publish_endings", nothing)
    monkeypatch.setattr(AttemptOpener, "publish_endings", nothing)
    assert harms(Profile.CALM)


def test_batches_that_are_not_unregistered(monkeypatch):
    """A crash between the end of a batch and its removal would leave it in the batch registry for ever."""
    monkeypatch.setattr(Coordinator, "_clear_up", nothing)
    assert harms(Profile.EVERYTHING)
