"""Decisions on the results of a provider batch, taken with the row locked. Pure.

An attempt that waits for a provider batch was never published, so the coordinator is its only writer. It
appends the events an executor would append (`provisioning`, `running`), and then

    an answer             `responded`, and the next attempt opens with it, for scoring
    a transient fault     `retrying`, and the next attempt opens, for a provider batch or an executor
    no retry is left      `failed`
    an invalid request    `failed`

all in one transaction. So each transition is legal, the cost is counted once, in the event that records the
answer, and retries are charged as for a fault of an executor's call. The attempt is compared (compare-and-
set): a result that is read again finds a later attempt, and changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from coordinator.attempts import PROVIDER_BATCH, AttemptFactory, Logged, charges_of, next_opening
from coordinator.decisions import FactoryOf
from domain.batch_spec import BatchFallback, BatchSpec
from eventlog import payloads as p
from eventlog.events import Event
from eventlog.lifecycle import ENDED, Phase
from projections.folds.change import EvaluationRow
from projections.ledger.contract import AttemptOpening, Decide, EvaluationState
from projections.ledger.provider_batches import ProviderBatch


@dataclass(frozen=True, slots=True)
class PermanentError:
    """A permanent fault: a retry would fail, too."""

    fault: p.ErrorDetail


@dataclass(frozen=True, slots=True)
class TransientError:
    """A transient fault: a retry may succeed."""

    fault: p.ErrorDetail


Outcome = p.Answer | PermanentError | TransientError


@dataclass(frozen=True, slots=True)
class CollectionRun:
    """A provider batch whose results are being collected, and the spec of its batch."""

    provider_batch: ProviderBatch
    spec: BatchSpec
    attempts: Mapping[str, int]
    """The requested attempt of each evaluation."""


def record(factory_of: FactoryOf, outcomes: Mapping[str, Outcome], this: CollectionRun) -> Decide:
    """Record the result of each evaluation whose requested attempt is still the newest."""

    def decide(state: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = state.row
        key, attempt = row.evaluation_id, this.attempts[row.evaluation_id]
        factory = factory_of(key).tracing(logged)
        if row.cursor.phase in ENDED:
            return _paid_late(factory, row, logged, outcomes[key], attempt)
        if state.epoch or row.cursor != (attempt, 0, Phase.QUEUED):
            return None
        match outcomes[key]:
            case p.Answer() as answer:
                return _answered(factory, row, logged, answer, this)
            case TransientError(fault=fault):
                return _try_again(factory, row, logged, fault, this)
            case PermanentError(fault=fault):
                return AttemptOpening(factory.give_up(row, logged, fault, was_published=False), "")

    return decide


def _answered(
    factory: AttemptFactory, row: EvaluationRow, logged: Logged, answer: p.Answer, this: CollectionRun
) -> AttemptOpening:
    events = _carried_on(factory, row, this, _responded(answer))
    logged = {**logged, **{event.key: event for event in events}}
    left = this.spec.retries - charges_of(logged).total
    reason = p.OpeningReason.SCORING
    scored = next_opening(logged, reason=reason, epoch=factory.epoch, retries=left)
    return AttemptOpening([*events, *factory.open(row, scored)], factory.epoch)


def _try_again(
    factory: AttemptFactory, row: EvaluationRow, logged: Logged, fault: p.ErrorDetail, this: CollectionRun
) -> AttemptOpening:
    if charges_of(logged).total >= this.spec.retries:
        return AttemptOpening(_carried_on(factory, row, this, p.Failed(error=fault)), "")
    retrying = p.Retrying(error=fault, retry_at=factory.now)
    events = _carried_on(factory, row, this, retrying)
    logged = {**logged, **{event.key: event for event in events}}
    by_provider = this.spec.batch_api is BatchFallback.RESUBMIT
    epoch = "" if by_provider else factory.epoch
    left = this.spec.retries - charges_of(logged).total
    again = next_opening(logged, reason=p.OpeningReason.RETRY, epoch=epoch, retries=left)
    return AttemptOpening([*events, *factory.open(row, again)], epoch, by_provider=by_provider)


def _carried_on(
    factory: AttemptFactory,
    row: EvaluationRow,
    this: CollectionRun,
    ending: p.Responded | p.Retrying | p.Failed,
) -> list[Event]:
    """Create the events that an executor would append."""
    target = this.spec.targets[this.provider_batch.target]
    claim = p.Provisioning(executor=factory.source, nonce=this.provider_batch.id, runtime=PROVIDER_BATCH)
    running = p.Running(target=target.label, process=(this.provider_batch.provider_id or "")[:200])
    facts = enumerate((claim, running, ending), start=1)
    return [factory.event(row, fact, row.cursor.attempt, sequence) for sequence, fact in facts]


def _paid_late(
    factory: AttemptFactory, row: EvaluationRow, logged: Logged, outcome: Outcome, attempt: int
) -> AttemptOpening | None:
    """Record an answer that came after its evaluation had ended, as a late event with its cost."""
    is_ours = row.cursor.attempt == attempt + 1 and row.cursor.sequence == 0
    if not isinstance(outcome, p.Answer) or not is_ours or (attempt, 1) in logged:
        return None
    return AttemptOpening([factory.event(row, _responded(outcome), attempt, 1)], factory.epoch)


def _responded(answer: p.Answer) -> p.Responded:
    return p.Responded(answer.output, answer.usage, answer.cost_usd, answer.latency_ms)
