"""Metrics of provider batches; `docs/reference/telemetry.md` lists them."""

from collections import Counter
from collections.abc import Collection
from datetime import datetime

from opentelemetry.metrics import get_meter

from coordinator.provider_batches.outcomes import CollectionRun, Outcome
from eventlog import payloads as p
from projections.ledger.provider_batches import ProviderBatch
from providers.prices import BATCH_DISCOUNT

NOT_ASKED = frozenset({"expired", "canceled"})
SECONDS = (10, 60, 300, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400)

_meter = get_meter("scoreline.coordinator")

SUBMITTED = _meter.create_counter("eval_batch_api_submitted_total", description="Batches submitted")
REQUESTS = _meter.create_counter("eval_batch_api_requests_total", description="Results collected")
SAVED = _meter.create_counter(
    "eval_batch_api_saved_usd_total", description="US dollars saved by the discount"
)
UNTIL_ENDED = _meter.create_histogram(
    "eval_batch_api_poll_duration_seconds",
    description="Time from submission to the end",
    explicit_bucket_boundaries_advisory=SECONDS,
)


def count_submitted(provider: str) -> None:
    """Count a submitted provider batch."""
    SUBMITTED.add(1, {"provider": provider})


def count_ended(provider: str, provider_batch: ProviderBatch, now: datetime) -> None:
    """Record how long a provider batch took."""
    if provider_batch.submitted_at:
        taken = (now - provider_batch.submitted_at).total_seconds()
        UNTIL_ENDED.record(max(0.0, taken), {"provider": provider})


def count_results(this: CollectionRun, outcomes: Collection[Outcome]) -> None:
    """Count recorded results, and the cost that the discount saved."""
    provider = this.spec.targets[this.provider_batch.target].type
    for outcome, many in Counter(map(_kind, outcomes)).items():
        REQUESTS.add(many, {"provider": provider, "outcome": outcome})
    paid = sum(each.cost_usd for each in outcomes if isinstance(each, p.Answer))
    SAVED.add(paid / BATCH_DISCOUNT - paid, {"provider": provider})


def _kind(outcome: Outcome) -> str:
    if isinstance(outcome, p.Answer):
        return "succeeded"
    return outcome.fault.kind if outcome.fault.kind in NOT_ASKED else "errored"
