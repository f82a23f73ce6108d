"""What to open for an evaluation, decided with its row locked and all its events at hand. Pure.

Each of these makes a function that the ledger calls inside its transaction: whatever has changed since
somebody thought of it, the row as it stands now has the last word.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from coordinator.attempts import PROVIDER_BATCH, AttemptFactory, Ending, Logged
from domain.retry_policy import MOVED
from eventlog import payloads as p
from eventlog.lifecycle import ENDED, SETTLED
from projections.folds.change import EvaluationRow
from projections.ledger.contract import AttemptOpening, Decide, EvaluationState

FactoryOf = Callable[[str], AttemptFactory]
"""Who opens an attempt of this evaluation: it knows the epoch of the evaluation's shard."""
IsAsked = Callable[[p.AnyPayload], bool]
"""Whether the answer to an opening is to come from a provider batch."""


def _by_executors(_opening: p.AnyPayload) -> bool:
    return False


def try_again(
    factory_of: FactoryOf,
    expected: Mapping[str, int],
    *,
    reason: p.OpeningReason,
    retries: int,
    is_asked: IsAsked = _by_executors,
) -> Decide:
    """Open the next attempt, if the one that was looked at is still the newest.

    What nobody has begun opens for a provider batch, if its batch wants that. Nothing else changes hands:
    what executors have tried, they try again.
    """

    def decide(standing: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = standing.row
        if row.cursor.phase in ENDED or row.cursor.attempt != expected[row.evaluation_id]:
            return None
        factory = factory_of(row.evaluation_id).tracing(logged)
        events = factory.again(row, logged, reason=reason, retries=retries)
        asks = len(events) == 1 and _is_to_begin(row, logged) and is_asked(events[0].data)
        return AttemptOpening(events, "" if asks else factory.epoch, asks=asks)

    return decide


def _is_to_begin(row: EvaluationRow, logged: Logged) -> bool:
    """Whether an attempt was withdrawn, or came to nothing because Redis was lost or started again.

    Not one for which a provider was asked before: executors were told of it because it did not answer.
    """
    last = logged[row.cursor[:2]].data
    if isinstance(last, p.Queued):
        claims = (event.data for event in logged.values() if isinstance(event.data, p.Provisioning))
        return all(claim.runtime != PROVIDER_BATCH for claim in claims)
    return isinstance(last, p.Retrying) and last.error.kind == MOVED


def reopen(
    factory_of: FactoryOf,
    *,
    retries: int,
    waiting: Collection[str] = (),
    is_asked: IsAsked = _by_executors,
) -> Decide:
    """Open an attempt of what is settled, because an operator asks.

    Those that wait for others of their group get no epoch, and neither do those that a provider batch is to
    answer: nobody is told before their turn has come.
    """

    def decide(standing: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = standing.row
        if row.cursor.phase not in SETTLED:
            return None
        factory = factory_of(row.evaluation_id).tracing(logged)
        if row.evaluation_id in waiting:
            factory = replace(factory, epoch="")
        events = factory.again(row, logged, reason=p.OpeningReason.OPERATOR, retries=retries)
        asks = is_asked(events[0].data)
        return AttemptOpening(events, "" if asks else factory.epoch, asks=asks)

    return decide


def end(factory_of: FactoryOf, ending: Ending) -> Decide:
    """End what has not ended."""

    def decide(standing: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = standing.row
        if row.cursor.phase in ENDED:
            return None
        factory = factory_of(row.evaluation_id).tracing(logged)
        return AttemptOpening(factory.open(row, ending), factory.epoch)

    return decide


def give_up(factory_of: FactoryOf, faults: Mapping[str, p.ErrorDetail]) -> Decide:
    """Settle what can't be tried at all, each with its reason."""

    def decide(standing: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = standing.row
        if row.cursor.phase in ENDED:
            return None
        factory = factory_of(row.evaluation_id).tracing(logged)
        told = standing.epoch != ""
        events = factory.give_up(row, logged, faults[row.evaluation_id], told=told)
        return AttemptOpening(events, factory.epoch if told else "")

    return decide
