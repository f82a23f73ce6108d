"""What a provider's results mean for evaluations: decided with the row locked, pure.

Nobody was ever told of an attempt that waits for a provider batch, so nobody else can write in it: it is
the coordinator's to carry on. It does as an executor would have done (`provisioning`, `running`), and then

    an answer              `responded`, and the next attempt opens with it, for its scoring
    a fault that may pass  `retrying`, and the next attempt opens: asked in another batch, or by an executor
    no retry is left       `failed`
    a bad request          `failed`

all in one transaction. So each step is legal, what was paid is counted once, where the answer is put on
record, and the retries of an evaluation are charged as if an executor had met the fault. The attempt that
was asked is compared: a result that is read again finds its attempt over, and changes nothing.
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
    """A request that no other try would mend."""

    fault: p.ErrorDetail


@dataclass(frozen=True, slots=True)
class TransientError:
    """A fault that may not happen again."""

    fault: p.ErrorDetail


Outcome = p.Answer | PermanentError | TransientError


@dataclass(frozen=True, slots=True)
class CollectionRun:
    """A provider batch whose results are being read, and what its batch wants done with them."""

    provider_batch: ProviderBatch
    spec: BatchSpec
    attempts: Mapping[str, int]
    """In which attempt each evaluation was asked."""


def record(factory_of: FactoryOf, outcomes: Mapping[str, Outcome], this: CollectionRun) -> Decide:
    """Carry on with each evaluation as its result says, if it still waits for it."""

    def decide(standing: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = standing.row
        key, asked = row.evaluation_id, this.attempts[row.evaluation_id]
        factory = factory_of(key).tracing(logged)
        if row.cursor.phase in ENDED:
            return _paid_late(factory, row, logged, outcomes[key], asked)
        if standing.epoch or row.cursor != (asked, 0, Phase.QUEUED):
            return None
        match outcomes[key]:
            case p.Answer() as answer:
                return _answered(factory, row, logged, answer, this)
            case TransientError(fault=fault):
                return _try_again(factory, row, logged, fault, this)
            case PermanentError(fault=fault):
                return AttemptOpening(factory.give_up(row, logged, fault, told=False), "")

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
    asks = this.spec.batch_api is BatchFallback.RESUBMIT
    epoch = "" if asks else factory.epoch
    left = this.spec.retries - charges_of(logged).total
    again = next_opening(logged, reason=p.OpeningReason.RETRY, epoch=epoch, retries=left)
    return AttemptOpening([*events, *factory.open(row, again)], epoch, asks=asks)


def _carried_on(
    factory: AttemptFactory,
    row: EvaluationRow,
    this: CollectionRun,
    ending: p.Responded | p.Retrying | p.Failed,
) -> list[Event]:
    """Write what an executor would have written."""
    target = this.spec.targets[this.provider_batch.target]
    claim = p.Provisioning(executor=factory.source, nonce=this.provider_batch.id, runtime=PROVIDER_BATCH)
    running = p.Running(target=target.label, process=(this.provider_batch.provider_id or "")[:200])
    facts = enumerate((claim, running, ending), start=1)
    return [factory.event(row, fact, row.cursor.attempt, sequence) for sequence, fact in facts]


def _paid_late(
    factory: AttemptFactory, row: EvaluationRow, logged: Logged, outcome: Outcome, asked: int
) -> AttemptOpening | None:
    """Keep an answer whose evaluation was ended before it came: somebody has paid for it."""
    is_ours = row.cursor.attempt == asked + 1 and row.cursor.sequence == 0
    if not isinstance(outcome, p.Answer) or not is_ours or (asked, 1) in logged:
        return None
    return AttemptOpening([factory.event(row, _responded(outcome), asked, 1)], factory.epoch)


def _responded(answer: p.Answer) -> p.Responded:
    return p.Responded(answer.output, answer.usage, answer.cost_usd, answer.latency_ms)
