"""Each mechanism removed in turn: the simulator must detect it, or its other results prove nothing."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from eventlog.codec import Entry
from eventlog.log import EXPIRY_SECONDS, AppendResult, CommitMark, EncodedEvent, Mode
from eventlog.memory import MemoryEventLog, _fields, _learn, _Stream
from eventlog.outbox import AttemptBuffer, Outbox
from projections.folds.change import Change
from projections.folds.progress import Progress
from projections.store.memory import MemoryStore
from storage_worker.consumer import parse_wake_ups
from storage_worker.gaps import GapPolicy
from storage_worker.storage import Storage
from storage_worker.stream_diff import StreamDiff
from tests.simulation import storage_process
from tests.simulation.process import Life
from tests.simulation.profiles import Profile
from tests.simulation.run import Parts, simulate
from tests.simulation.storage_process import StorageWorker, wake_ups
from tests.simulation.world import Harm

SEEDS = 400


def harms(profile: Profile, parts: Parts | None = None, *, first: int = 0) -> Iterable[Harm]:
    """Run seeds until invariants are broken, and return which kinds; `first`, where few seeds break one."""
    for seed in range(first, first + SEEDS):
        verdict = simulate(seed, profile=profile, parts=parts or Parts())
        if verdict.violations:
            return {violation.harm for violation in verdict.violations}
    pytest.fail(f"nothing was noticed in {SEEDS} seeds")


class Careless(MemoryStore):
    """Moves rows without compare-and-set."""

    def _is_as_read(self, change: Change) -> bool:
        return True


class Heedless(Careless):
    """Has no unique key, either."""

    def _refuse_stored_keys(self, changes: Sequence[Change]) -> None:
        """Refuse nothing."""


@pytest.mark.parametrize("tables", [Careless, Heedless])
def test_without_compare_and_set(tables):
    """Two workers that store the same events would count them twice."""
    assert harms(Profile.EVERYTHING, Parts(tables=tables))


class Fenceless(MemoryEventLog):
    """Accepts events of an older attempt."""

    def _add(self, stream: _Stream, record: EncodedEvent, mode: Mode, epoch: str) -> AppendResult:
        answer = super()._add(stream, record, mode, epoch)
        return AppendResult.OK if answer is AppendResult.FENCED else answer


def test_without_the_fence():
    """A zombie would write on, and never learn that its attempt is over."""
    assert harms(Profile.DEATHS, Parts(log=Fenceless))


class Generous(MemoryEventLog):
    """Grants an attempt to every claim."""

    def _add(self, stream: _Stream, record: EncodedEvent, mode: Mode, epoch: str) -> AppendResult:
        answer = super()._add(stream, record, mode, epoch)
        if answer is AppendResult.CONFLICT and mode is Mode.CLAIM:
            _learn(stream, record, epoch)
            stream.entries.append((self._next_id(), _fields(record)))
            return AppendResult.OK
        return answer


def test_without_a_single_owner():
    """Two executors that both believe to own an attempt would both write to it."""
    assert harms(Profile.DEATHS, Parts(log=Generous))


class Unaware(MemoryEventLog):
    """Never reports a new epoch to its writers."""

    async def epoch(self, evaluation_id: str) -> str:
        return "always"


def test_without_epochs():
    """Data lost with Redis would stay lost."""
    assert {Harm.LOST, Harm.STUCK} & set(harms(Profile.LOSS, Parts(log=Unaware)))


class Hasty(StorageWorker):
    """Acknowledges before it commits."""

    async def finish(self, life: Life, storage: Storage, taken: Mapping[int, str]) -> None:
        if taken:
            await self.acknowledge(life, taken)
            await storage.process(*parse_wake_ups(wake_ups(taken)))


def test_acknowledging_before_the_commit():
    """A crash in between would lose the wake-up, and with it the events that have no row yet."""
    assert harms(Profile.EVERYTHING, Parts(worker=Hasty), first=110)


class Overtaken(MemoryEventLog):
    """Lets an older mark undo a newer one."""

    async def settle(self, marks: Sequence[CommitMark]) -> None:
        for mark in marks:
            stream = self._alive(mark.evaluation_id)
            stream.committed = (mark.attempt, mark.sequence)
            stream.expires_ms = self._clock_ms() + EXPIRY_SECONDS * 1000 if mark.ended else float("inf")


def test_marks_that_go_back():
    """Streams and tails would be kept for ever."""
    assert harms(Profile.PORTS, Parts(log=Overtaken))


def is_on_record(draft: AttemptBuffer, _mark: object) -> bool:
    """Drop buffered events as soon as Redis has them."""
    return draft.acknowledged and draft.closed


def test_a_tail_released_too_early(monkeypatch):
    """Redis alone would hold them, and may lose them."""
    monkeypatch.setattr(AttemptBuffer, "is_committed_by", is_on_record)
    assert harms(Profile.LOSS)


def test_a_tail_that_is_not_re_appended(monkeypatch):
    """A writer would ignore a loss of Redis."""

    def forget(_outbox: Outbox, _buffer: AttemptBuffer) -> None:
        """Do nothing."""

    monkeypatch.setattr(Outbox, "reappend", forget)
    assert harms(Profile.LOSS)


def test_without_bridges(monkeypatch):
    """A foreign evaluation with a gap would wait for ever."""
    for_ever = GapPolicy(timeout=timedelta(days=1), warning=timedelta(days=1))
    monkeypatch.setattr(storage_process, "GAP_POLICY", for_ever)
    assert Harm.STUCK in set(harms(Profile.FOREIGN))


def test_without_sweeps(monkeypatch):
    """Lost wake-ups and gaps would never be found."""

    async def never(*_args: Any) -> None:
        """Do nothing."""

    monkeypatch.setattr(StorageWorker, "_sweep_forever", never)
    assert Harm.STUCK in set(harms(Profile.FOREIGN))


def test_conflicts_that_overwrite(monkeypatch):
    """A later event under the same key would replace the stored one."""

    def take_the_last(tables: MemoryStore, change: Change) -> Progress:
        for event in change.side_events:
            tables.events[event.evaluation_id, event.attempt, event.sequence] = event
        return Progress()

    def all_are_new(seen: StreamDiff, _stored: object) -> list[Entry]:
        return seen.entries

    monkeypatch.setattr("storage_worker.stream_diff._not_stored", all_are_new)
    monkeypatch.setattr(MemoryStore, "_write_aside", take_the_last)
    assert harms(Profile.FOREIGN)
