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

from coordinator.attempts import PROVIDER_BATCH, Logged, Opener, charges_of, next_opening
from coordinator.decisions import OpenerOf
from domain.batch_spec import BatchFallback, BatchSpec
from eventlog import payloads as p
from eventlog.events import Event
from eventlog.lifecycle import ENDED, Phase
from projections.folds.change import EvaluationRow
from projections.ledger.contract import AttemptOpening, Decide, EvaluationState
from projections.ledger.provider_batches import ProviderBatch


@dataclass(frozen=True, slots=True)
class Hopeless:
    """A request that no other try would mend."""

    fault: p.ErrorDetail


@dataclass(frozen=True, slots=True)
class Passing:
    """A fault that may not happen again."""

    fault: p.ErrorDetail


Outcome = p.Answer | Hopeless | Passing


@dataclass(frozen=True, slots=True)
class Round:
    """A provider batch whose results are being read, and what its batch wants done with them."""

    provider_batch: ProviderBatch
    spec: BatchSpec
    attempts: Mapping[str, int]
    """In which attempt each evaluation was asked."""


def record(opener_of: OpenerOf, outcomes: Mapping[str, Outcome], this: Round) -> Decide:
    """Carry on with each evaluation as its result says, if it still waits for it."""

    def decide(standing: EvaluationState, logged: Logged) -> AttemptOpening | None:
        row = standing.row
        key, asked = row.evaluation_id, this.attempts[row.evaluation_id]
        opener = opener_of(key).tracing(logged)
        if row.cursor.phase in ENDED:
            return _paid_late(opener, row, logged, outcomes[key], asked)
        if standing.epoch or row.cursor != (asked, 0, Phase.QUEUED):
            return None
        match outcomes[key]:
            case p.Answer() as answer:
                return _answered(opener, row, logged, answer, this)
            case Passing(fault=fault):
                return _try_again(opener, row, logged, fault, this)
            case Hopeless(fault=fault):
                return AttemptOpening(opener.give_up(row, logged, fault, told=False), "")

    return decide


def _answered(
    opener: Opener, row: EvaluationRow, logged: Logged, answer: p.Answer, this: Round
) -> AttemptOpening:
    events = _carried_on(opener, row, this, _responded(answer))
    logged = {**logged, **{event.key: event for event in events}}
    left = this.spec.retries - charges_of(logged).total
    reason = p.OpeningReason.SCORING
    scored = next_opening(logged, reason=reason, epoch=opener.epoch, retries=left)
    return AttemptOpening([*events, *opener.open(row, scored)], opener.epoch)


def _try_again(
    opener: Opener, row: EvaluationRow, logged: Logged, fault: p.ErrorDetail, this: Round
) -> AttemptOpening:
    if charges_of(logged).total >= this.spec.retries:
        return AttemptOpening(_carried_on(opener, row, this, p.Failed(error=fault)), "")
    retrying = p.Retrying(error=fault, retry_at=opener.now)
    events = _carried_on(opener, row, this, retrying)
    logged = {**logged, **{event.key: event for event in events}}
    asks = this.spec.batch_api is BatchFallback.RESUBMIT
    epoch = "" if asks else opener.epoch
    left = this.spec.retries - charges_of(logged).total
    again = next_opening(logged, reason=p.OpeningReason.RETRY, epoch=epoch, retries=left)
    return AttemptOpening([*events, *opener.open(row, again)], epoch, asks=asks)


def _carried_on(
    opener: Opener, row: EvaluationRow, this: Round, ending: p.Responded | p.Retrying | p.Failed
) -> list[Event]:
    """Write what an executor would have written."""
    target = this.spec.targets[this.provider_batch.target]
    claim = p.Provisioning(executor=opener.source, nonce=this.provider_batch.id, runtime=PROVIDER_BATCH)
    running = p.Running(target=target.label, process=(this.provider_batch.provider_id or "")[:200])
    facts = enumerate((claim, running, ending), start=1)
    return [opener.event(row, fact, row.cursor.attempt, sequence) for sequence, fact in facts]


def _paid_late(
    opener: Opener, row: EvaluationRow, logged: Logged, outcome: Outcome, asked: int
) -> AttemptOpening | None:
    """Keep an answer whose evaluation was ended before it came: somebody has paid for it."""
    is_ours = row.cursor.attempt == asked + 1 and row.cursor.sequence == 0
    if not isinstance(outcome, p.Answer) or not is_ours or (asked, 1) in logged:
        return None
    return AttemptOpening([opener.event(row, _responded(outcome), asked, 1)], opener.epoch)


def _responded(answer: p.Answer) -> p.Responded:
    return p.Responded(answer.output, answer.usage, answer.cost_usd, answer.latency_ms)
