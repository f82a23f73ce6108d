"""Inspection of an evaluation's stream, for the reconciler's decision. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from coordinator.reconcile_decision import EvaluationView, Owner, Published
from eventlog import payloads as p
from eventlog.codec import Entry, RawEntry, readable_entries
from eventlog.events import EventKey
from eventlog.lifecycle import CLOSING_TYPES
from eventlog.timeline import arrival_ms, first_of_each_key
from projections.ledger.contract import EvaluationState


@dataclass(frozen=True, slots=True)
class StreamInspection:
    """The newest attempt of an evaluation, as its stream has it."""

    state: EvaluationState
    published: Published
    claimed_by: str | None
    claimed_at_ms: int
    is_ahead: bool
    has_opening: bool

    def view(
        self,
        live: Collection[str],
        *,
        now_ms: int,
        allowed: timedelta,
        is_settled: bool,
        is_drained: bool,
    ) -> EvaluationView:
        """Combine it with the owner's liveness, the epoch and the queue."""
        row = self.state.row
        return EvaluationView(
            row.cursor.phase,
            self.published,
            self._owner(live, now_ms=now_ms, allowed=allowed),
            claimed_in_row=row.owner is not None,
            is_ahead=self.is_ahead,
            has_opening=self.has_opening,
            is_settled=is_settled,
            is_drained=is_drained,
        )

    def _owner(self, live: Collection[str], *, now_ms: int, allowed: timedelta) -> Owner:
        if self.claimed_by is None:
            return Owner.NONE
        hung = now_ms - self.claimed_at_ms > allowed.total_seconds() * 1000
        return Owner.ALIVE if self.claimed_by in live and not hung else Owner.LOST


def inspect_stream(state: EvaluationState, stream: Sequence[RawEntry], *, epoch: str) -> StreamInspection:
    """Inspect the stream of a row's attempt."""
    row = state.row
    first = first_of_each_key(readable_entries(row.evaluation_id, stream))
    attempt, sequence, _ = row.cursor
    claim = first.get((attempt, 1))
    owner = claim.event.data if claim else None
    return StreamInspection(
        state,
        Published.NEVER
        if not state.epoch
        else Published.CURRENT_EPOCH
        if state.epoch == epoch
        else Published.OLD_EPOCH,
        owner.executor if isinstance(owner, p.Provisioning) else None,
        arrival_ms(claim.id) if claim else 0,
        is_ahead=any(_is_unapplied(key, entry, attempt, sequence) for key, entry in first.items()),
        has_opening=(attempt, 0) in first,
    )


def _is_unapplied(key: EventKey, entry: Entry, attempt: int, sequence: int) -> bool:
    """Whether an entry is a closing event, or a fence, that the row has not applied."""
    if key[0] > attempt:
        return True
    return key[0] == attempt and key[1] > sequence and entry.event.type in CLOSING_TYPES
