"""The invariants that must hold at the end of a run."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from coordinator.attempt_opening import spec_of
from domain.retry_policy import UNCHARGED_KINDS
from eventlog import payloads as p
from eventlog.codec import Entry, decode_body, read_entry
from eventlog.events import EventKey
from eventlog.keys import shard_of
from eventlog.lifecycle import ENDED
from eventlog.timeline import Disposition, replay
from projections.folds.change import EvaluationRow, EventRow
from projections.folds.progress import Progress
from projections.folds.refold import RefoldResult, refold
from projections.store.memory import MemoryStore
from tests.simulation.embedder import Embedder
from tests.simulation.executor import Executing
from tests.simulation.foreign import Stranger
from tests.simulation.world import EMBEDDED, Acknowledgement, Harm, World


def check(
    world: World, stranger: Stranger, executors: Sequence[Executing], embedder: Embedder
) -> dict[str, str]:
    """Record every broken invariant; return the evaluations that have not ended, each with its reason."""
    checker = _Checker(world, stranger, executors, embedder)
    checker.check_acknowledged()
    checker.check_owners()
    checker.check_bodies()
    checker.check_folds()
    checker.check_submitted()
    checker.check_batches()
    checker.check_budgets()
    checker.check_strangers()
    checker.check_leftovers()
    checker.count()
    return checker.unended


class _Checker:
    def __init__(
        self, world: World, stranger: Stranger, executors: Sequence[Executing], embedder: Embedder
    ) -> None:
        self.world, self.tables, self.stranger = world, world.tables, stranger
        self.executors, self.embedder = executors, embedder
        self.unended: dict[str, str] = {}

    def check_acknowledged(self) -> None:
        """Every acknowledged event is in the tables, as it was written."""
        for ack in self.world.knowledge.acknowledged:
            stored = self.tables.events.get((ack.evaluation_id, *ack.key))
            if stored is None and not self._may_be_gone(ack):
                self._lost(f"{_named(ack.evaluation_id, ack.key)} was acknowledged to {ack.writer}")
            elif stored is not None and stored.event != ack.body and not self._may_be_gone(ack):
                self._lost(f"{_named(ack.evaluation_id, ack.key)} is stored with another body")

    def _may_be_gone(self, ack: Acknowledgement) -> bool:
        """Whether Redis was lost since, and the writer is dead, was fenced, or had been replaced before."""
        knowledge = self.world.knowledge
        if self.world.redis.losses == ack.losses:
            return False
        return (
            ack.writer in knowledge.dead
            or (ack.writer, ack.evaluation_id, ack.key[0]) in knowledge.refused
            or knowledge.replaced.get(ack.evaluation_id, 0) > ack.key[0]
        )

    def check_owners(self) -> None:
        """An attempt has one opener and one writer."""
        sources: dict[tuple[str, int], set[str]] = defaultdict(set)
        for key, event in self._submitted_events():
            sources[key, event.attempt].add(decode_body(event.event).source)
        for (key, attempt), found in sorted(sources.items()):
            if len(found) > 1:
                self._wrong(f"attempt {attempt} of {key} has several writers: {sorted(found)}")
        claims: dict[tuple[str, EventKey], set[str]] = defaultdict(set)
        for ack in self.world.knowledge.acknowledged:
            if ack.key[1] == 1 and ack.writer.startswith("executor"):
                claims[ack.evaluation_id, ack.key].add(ack.writer)
        for (key, place), writers in sorted(claims.items()):
            if len(writers) > 1 and not self.world.redis.losses:
                self._wrong(f"{_named(key, place)} was granted to {sorted(writers)}")

    def _submitted_events(self) -> Iterator[tuple[str, EventRow]]:
        """The owners' events of evaluations that only honest writers write to."""
        foreign = self.world.knowledge.foreign_keys
        for (key, attempt, sequence), event in self.tables.events.items():
            held = self.tables.evaluations[key]
            ours = self.world.is_ours(held.row.batch_id)
            if ours and sequence > 0 and (key, (attempt, sequence)) not in foreign:
                yield key, event

    def check_bodies(self) -> None:
        """Stored events are those of an honest writer, whatever others sent later; no gap is bridged."""
        bodies = self.world.knowledge.bodies
        for key, event in self._submitted_events():
            place = (event.attempt, event.sequence)
            if event.event not in bodies.get((key, place), ()):
                self._wrong(f"{_named(key, place)} is stored as no writer sent it")
            ended_above = event.attempt < self.tables.evaluations[key].row.cursor.attempt
            if event.verdict not in {
                Disposition.APPLIED,
                Disposition.STALE,
                *[Disposition.LATE] * ended_above,
            }:
                self._wrong(f"{_named(key, place)} is {event.verdict}, though its writer kept the rules")
        for key, attempt, sequence in self.tables.bridges:
            if self.world.is_ours(self.tables.evaluations[key].row.batch_id):
                self._lost(f"{_named(key, (attempt, sequence))} was bridged to, though nothing got lost")

    def check_folds(self) -> None:
        """Rows, scorecards and counters are what the stored events fold to."""
        total: dict[tuple[str, int], Progress] = defaultdict(Progress)
        for key, retraced in retraced_all(self.tables, self.world.redis.log.shards).items():
            held, change = self.tables.evaluations[key], retraced.change
            for broken in retraced.broken:
                self._wrong(f"{key}: {broken}")
            row = held.row._replace(head=None)
            folded = EvaluationRow(key, row.batch_id, row.month, change.after, change.owner, change.bridged)
            if (row, held.ended_at) != (folded, change.ended_at):
                self._wrong(f"the row of {key} is {row}, its events fold to {folded}")
            if self.tables.scorecards.get(key) != change.scorecard:
                self._wrong(f"the scorecard of {key} is not what its events fold to")
            total[row.batch_id, change.shard] += retraced.progress
        for place in sorted({*total, *self.tables.progress}):
            counted, recounted = self.tables.progress.get(place, Progress()), total[place]
            if counted != recounted:
                self.world.violate(Harm.DOUBLED, f"counters of {place}: {counted}, recount: {recounted}")
        for key, attempt, sequence in self.tables.events:
            if key not in self.tables.evaluations:
                self._wrong(f"{_named(key, (attempt, sequence))} belongs to no evaluation")

    def check_submitted(self) -> None:
        """Every evaluation that was accepted has ended, or its batch is paused."""
        batches = self.world.ledger.batches.held
        for key, each in self.tables.evaluations.items():
            batch, phase = batches.get(each.row.batch_id), each.row.cursor.phase
            if phase in ENDED or not self.world.is_ours(each.row.batch_id):
                continue
            if batch and batch.state == "paused" and not batch.finished:
                self.unended[key] = "its batch is paused"
            elif each.row.batch_id == EMBEDDED and self.embedder.lives > 1:
                self.unended[key] = "its writer died"
            else:
                self.world.violate(Harm.STUCK, f"{key} is {each.row.cursor}")

    def check_batches(self) -> None:
        """A batch whose evaluations have all ended is finished, and leaves no entry and no task."""
        for batch_id, batch in self.world.ledger.batches.held.items():
            left = self.world.left_behind(batch_id)
            if not batch.finished and batch.state != "paused":
                self.world.violate(Harm.STUCK, f"{batch_id} is {batch.state}, and not over")
            elif batch.finished and left:
                self._wrong(f"{batch_id} is over, and has left {left}")
        for event in self.world.ledger.batches.events:
            state = self.world.ledger.batches.held[event.batch_id].state
            if event.type == "cancelled" and state != "cancelled":
                self._wrong(f"{event.batch_id} was cancelled, and is {state}")
        for key in sorted(key for key, ack in self.world.ledger._publications.items() if not ack.published):
            self._wrong(f"the end of {key} was never published")

    def check_budgets(self) -> None:
        """No evaluation has more attempts than the batch allows, an operator's retry apart."""
        for key, held in self.tables.evaluations.items():
            batch = self.world.ledger.batches.held.get(held.row.batch_id)
            if batch and (most := _most_charged(self.tables, key)) > spec_of(batch).retries:
                self._wrong(f"{key} was tried again {most} times after faults that are charged")

    def check_strangers(self) -> None:
        """Evaluations of a foreign writer have ended, or can't; untouched ones are as they were written."""
        for key, events in self.stranger.written.items():
            held = self.tables.evaluations.get(key)
            phase = held.row.cursor.phase if held else None
            if phase not in ENDED:
                self.unended[key] = self._why_not_ended(key)
            plain = key not in self.stranger.touched and not self.world.redis.losses
            if not plain or any(bridged == key for bridged, *_ in self.tables.bridges):
                continue
            for each in events:
                stored = self.tables.events.get((key, *each.key))
                if stored is None or stored.verdict != Disposition.APPLIED:
                    self._lost(f"{_named(key, each.key)}, which a stranger wrote, was not applied")

    def _why_not_ended(self, key: str) -> str:
        """Return the reason: there is no closing event to apply, or to bridge to."""
        held = self.tables.evaluations.get(key)
        read = (read_entry(key, raw) for raw in self.world.redis.stream(key).entries)
        entries = [e for e in read if isinstance(e, Entry) and (key, *e.key) not in self.tables.events]
        if held is None:
            if entries:
                self.world.violate(Harm.STUCK, f"{key} has readable events, and no row")
            return "nothing readable arrived, or Redis lost it"
        gap = replay(held.row.cursor, entries).gap
        if gap and gap.closing:
            self.world.violate(Harm.STUCK, f"{key} could be bridged, and was not: {gap.missing}")
        return "no closing event beyond the gap" if gap else "its life does not end"

    def check_leftovers(self) -> None:
        """No writer buffers what Postgres has, and no stream outlives its evaluation.

        Three things may be left: what a sweep had ended when its worker crashed, streams whose expiry
        Redis has lost, and tails whose mark Redis has lost if their wake-ups were lost before.
        """
        knowledge, evaluations = self.world.knowledge, self.tables.evaluations
        unmarked = {key for key, held in evaluations.items() if held.updated_at <= self.world.redis.lost_at}
        tails, streams = knowledge.unswept | (unmarked & knowledge.unwoken), knowledge.unswept | unmarked
        open_ = {key for key, held in evaluations.items() if held.row.cursor.phase not in ENDED}
        writers: list[Executing | Embedder] = [*self.executors, self.embedder]
        for writer in writers:
            for draft in writer.kept:
                if draft.evaluation_id not in tails | open_:
                    self._wrong(f"{writer.life.name} keeps {draft.evaluation_id}, attempt {draft.attempt}")
        for key in sorted(evaluations.keys() - streams):
            if evaluations[key].row.cursor.phase in ENDED and self.world.redis.stream(key).entries:
                self._wrong(f"the stream of {key} outlives it")

    def count(self) -> None:
        """Count the outcomes, so that their coverage can be checked."""
        seen, tables = self.world.seen, self.tables
        seen.update(f"verdict {event.verdict}" for event in tables.events.values())
        seen.update(f"quarantined: {bad.reason}" for bad in tables.quarantined.values())
        seen.update(f"at last {each.row.cursor.phase}" for each in tables.evaluations.values())
        seen["bridged"] += len(tables.bridges)
        seen["not ended, with a reason"] += len(self.unended)

    def _lost(self, what: str) -> None:
        self.world.violate(Harm.LOST, what)

    def _wrong(self, what: str) -> None:
        self.world.violate(Harm.VIOLATION, what)


def retraced_all(tables: MemoryStore, shards: int) -> dict[str, RefoldResult]:
    """Read the whole log again, evaluation by evaluation."""
    logged: dict[str, list[EventRow]] = defaultdict(list)
    for (key, *_), event in sorted(tables.events.items()):
        logged[key].append(event)
    crossed: dict[str, dict[EventKey, tuple[range, ...]]] = defaultdict(dict)
    for (key, attempt, sequence), missing in tables.bridges.items():
        crossed[key][attempt, sequence] = missing
    return {
        key: refold(held.row, shard_of(key, shards), logged[key], crossed[key])
        for key, held in sorted(tables.evaluations.items())
    }


def _most_charged(tables: MemoryStore, key: str) -> int:
    """Count the charged retries between two requests of an operator, where there are most of them."""
    counts = [0]
    for _, row in sorted(tables.stored_of(key).items()):
        match decode_body(row.event).data:
            case p.Queued(reason=p.OpeningReason.OPERATOR):
                counts.append(0)
            case p.Retrying(error=error) if error.kind not in UNCHARGED_KINDS:
                counts[-1] += 1
            case _:
                pass
    return max(counts)


def _named(key: str, place: EventKey) -> str:
    return f"{key} {place[0]}/{place[1]}"
