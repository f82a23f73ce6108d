"""Counters and histograms of a storage worker; docs/reference/telemetry.md lists the names.

Only OpenTelemetry's API is used: without an SDK each instrument is a no-op. Counters are incremented once a
pass. A histogram records its values one by one, which is too slow for thousands in a pass: beyond
`RECORDED` it gets a systematic sample of them.
"""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime

from opentelemetry import metrics
from psycopg_pool import AsyncConnectionPool

from eventlog import payloads as p
from eventlog import tracing
from projections.database.connection import transaction
from projections.database.errors import DatabaseUnavailable
from projections.folds.progress import Progress
from projections.sql import query
from storage_worker.pass_results import EndedEvaluation, PassCounts

logger = logging.getLogger(__name__)

RECORDED = 20
"""Values of one pass that a histogram gets at most."""
MAX_LABELS = 50
MAX_KNOWN_BATCHES = 10_000
OTHER = "other"
VERDICTS = ("applied", "stale", "late", "rejected")
MS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000)
LONG_MS = (
    10,
    50,
    100,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    30_000,
    60_000,
    120_000,
    300_000,
    600_000,
    1_800_000,
)
SCORES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)

_meter = metrics.get_meter("scoreline.storage_worker")
_counter = _meter.create_counter

TESTS = _counter("eval_batch_tests_total", description="Evaluations that ended")
TESTS_PASSED = _counter("eval_batch_tests_passed_total", description="Evaluations with a good verdict")
TESTS_FAILED = _counter(
    "eval_batch_tests_failed_total", description="Evaluations that ended without a good verdict"
)
TEST_MS = _meter.create_histogram(
    "eval_test_duration_ms",
    description="From an evaluation's opening to its end",
    explicit_bucket_boundaries_advisory=LONG_MS,
)
TEST_SCORE = _meter.create_histogram(
    "eval_test_score",
    description="Scores of completed evaluations",
    explicit_bucket_boundaries_advisory=SCORES,
)
EVALUATOR_VERDICTS = {
    True: _counter("eval_stage_passed_total", description="Good verdicts of each evaluator"),
    False: _counter("eval_stage_failed_total", description="Bad verdicts of each evaluator"),
}
TOKENS = _counter("eval_tokens_total", description="Tokens used")
COST = _counter("eval_cost_usd_total", description="US dollars paid")
EVENTS = _counter("eval_storage_events_total", description="Events processed, by disposition")
REORDERED = _counter(
    "eval_storage_reordered_total", description="Events that arrived before one with a lower sequence"
)
GAPS_WARNED = _counter("eval_storage_gaps_warned_total", description="Gaps older than the warning")
GAPS_BRIDGED = _counter("eval_storage_gaps_bridged_total", description="Gaps stepped over")
QUARANTINED = _counter("eval_storage_quarantined_total", description="Quarantined entries, by reason")
LOST_RACES = _counter("eval_storage_lost_races_total", description="Another worker was faster")
PASS_MS = _meter.create_histogram(
    "eval_storage_pass_ms",
    description="One pass: read, order, commit",
    explicit_bucket_boundaries_advisory=MS,
)


def is_wired() -> bool:
    """Whether an SDK exports these metrics."""
    return not type(metrics.get_meter_provider()).__module__.startswith("opentelemetry.metrics")


def begin() -> None:
    """Export every counter from the start: a series that begins with 1 has no increase."""
    count(PassCounts(), Progress())
    for counter in (TESTS, TESTS_PASSED, TESTS_FAILED, GAPS_WARNED, QUARANTINED):
        counter.add(0)


def count(counts: PassCounts, added: Progress) -> None:
    """Count what one pass has committed."""
    for verdict in VERDICTS:
        EVENTS.add(counts.events[verdict], {"verdict": verdict})
    EVENTS.add(counts.duplicates, {"verdict": "duplicate"})
    REORDERED.add(counts.reordered)
    GAPS_BRIDGED.add(counts.bridged)
    LOST_RACES.add(counts.lost_races)
    TOKENS.add(added.tokens)
    COST.add(float(added.cost_usd))


def count_endings(ended: Sequence[EndedEvaluation], modes: Mapping[str, str]) -> None:
    """Count evaluations that have ended, each once: in the worker that committed its end."""
    passed = sum(1 for one in ended if one.card.verdict == "passed")
    TESTS.add(len(ended))
    TESTS_PASSED.add(passed)
    TESTS_FAILED.add(len(ended) - passed)
    for (evaluator, is_good), number in _verdicts_by_evaluator(ended).items():
        EVALUATOR_VERDICTS[is_good].add(number, {"stage": _evaluator_labels.bounded(evaluator)})
    for one in ended[:: -(-len(ended) // RECORDED)]:
        mode = _mode_labels.bounded(modes.get(one.batch_id, OTHER))
        TEST_MS.record(one.duration_ms, {"eval_mode": mode})
        if one.card.score is not None:
            TEST_SCORE.record(max(0.0, one.card.score))


def trace_endings(ended: Iterable[EndedEvaluation], *, start: datetime, end: datetime) -> None:
    """Put the commit into the traces of the evaluations that it ended."""
    for one in ended:
        if traceparent := one.ending.traceparent:
            about = {"test_case_id": one.case_id, "batch_id": one.batch_id, "attempt": one.card.attempt}
            tracing.finished("eval.worker.save_scorecard", traceparent, start=start, end=end, **about)


def _verdicts_by_evaluator(ended: Iterable[EndedEvaluation]) -> Counter[tuple[str, bool]]:
    verdicts: Counter[tuple[str, bool]] = Counter()
    for one in ended:
        if isinstance(result := one.ending.data, p.Completed):
            for score in result.scores:
                if score.passed is not None:
                    verdicts[score.evaluator, score.passed] += 1
    return verdicts


class BoundedLabels:
    """Bounds the cardinality of a label: the first values are kept, all later ones become `other`."""

    def __init__(self, limit: int = MAX_LABELS) -> None:
        self._limit = limit
        self._known: set[str] = set()

    def bounded(self, value: str) -> str:
        """Return the value, or `other` once there are too many."""
        if value not in self._known and len(self._known) >= self._limit:
            return OTHER
        self._known.add(value)
        return value


_evaluator_labels, _mode_labels = BoundedLabels(), BoundedLabels()


class BatchModes:
    """The target type of each batch, for labels: looked up once a batch; none without a database."""

    def __init__(self, pool: AsyncConnectionPool | None = None) -> None:
        self._pool = pool
        self._modes: dict[str, str] = {}

    async def of(self, batch_ids: Collection[str]) -> Mapping[str, str]:
        """Return the modes of these batches, as far as they can be read now."""
        unknown = sorted(set(batch_ids) - self._modes.keys())
        if unknown and self._pool:
            if len(self._modes) > MAX_KNOWN_BATCHES:
                self._modes.clear()
            try:
                async with transaction(self._pool) as conn:
                    cursor = await conn.execute(query("batch_target_types"), [unknown])
                    self._modes |= dict(await cursor.fetchall())
            except DatabaseUnavailable as error:  # the evaluations are stored: only their label is missing
                logger.debug("could not look up modes", extra={"error": str(error)})
        return self._modes
