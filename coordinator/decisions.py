"""Decisions on the next attempt, taken with the row locked and all events read. Pure.

Each function here returns a `Decide` that the ledger calls inside its transaction (compare-and-set): it
decides by the locked row, whatever has changed since the caller read it.
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
"""Returns the factory for an evaluation, with the epoch of its shard."""
UsesProviderBatch = Callable[[p.AnyPayload], bool]
"""Whether a provider batch is to answer an opening."""


def _by_executors(_opening: p.AnyPayload) -> bool:
    return False


def try_again(
    factory_of: FactoryOf,
    expected: Mapping[str, int],
    *,
    reason: p.OpeningReason,
    retries: int,
    uses_provider_batch: UsesProviderBatch = _by_executors,
) -> Decide:
    """Open the next attempt, if the expected one is still the newest (compare-and-set).

    An evaluation that no executor has started opens for a provider batch, if its batch uses them. Others
    stay with executors.
    """

    def decide(state: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = state.row
        if row.cursor.phase in ENDED or row.cursor.attempt != expected[row.evaluation_id]:
            return None
        factory = factory_of(row.evaluation_id).tracing(logged)
        events = factory.again(row, logged, reason=reason, retries=retries)
        by_provider = len(events) == 1 and _is_to_begin(row, logged) and uses_provider_batch(events[0].data)
        return AttemptOpening(events, "" if by_provider else factory.epoch, by_provider=by_provider)

    return decide


def _is_to_begin(row: EvaluationRow, logged: Logged) -> bool:
    """Whether an attempt was withdrawn, or was never claimed because Redis lost data or restarted.

    False after a request to a provider: it was published to executors because the provider did not answer.
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
    uses_provider_batch: UsesProviderBatch = _by_executors,
) -> Decide:
    """Open the next attempt of a settled evaluation, for an operator.

    An evaluation that waits for its serial group or for a provider batch gets no epoch, so it is not
    published yet.
    """

    def decide(state: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = state.row
        if row.cursor.phase not in SETTLED:
            return None
        factory = factory_of(row.evaluation_id).tracing(logged)
        if row.evaluation_id in waiting:
            factory = replace(factory, epoch="")
        events = factory.again(row, logged, reason=p.OpeningReason.OPERATOR, retries=retries)
        by_provider = uses_provider_batch(events[0].data)
        return AttemptOpening(events, "" if by_provider else factory.epoch, by_provider=by_provider)

    return decide


def end(factory_of: FactoryOf, ending: Ending) -> Decide:
    """End an evaluation that has not ended."""

    def decide(state: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = state.row
        if row.cursor.phase in ENDED:
            return None
        factory = factory_of(row.evaluation_id).tracing(logged)
        return AttemptOpening(factory.open(row, ending), factory.epoch)

    return decide


def give_up(factory_of: FactoryOf, faults: Mapping[str, p.ErrorDetail]) -> Decide:
    """Fail evaluations that can't be run, each with its own error."""

    def decide(state: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = state.row
        if row.cursor.phase in ENDED:
            return None
        factory = factory_of(row.evaluation_id).tracing(logged)
        was_published = state.epoch != ""
        events = factory.give_up(row, logged, faults[row.evaluation_id], was_published=was_published)
        return AttemptOpening(events, factory.epoch if was_published else "")

    return decide
