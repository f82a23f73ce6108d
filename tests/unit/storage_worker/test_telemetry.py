"""The metrics of a storage worker, in memory: everything is counted once, however often it is read."""

from datetime import timedelta

import pytest

from eventlog import payloads as p
from eventlog.events import Event
from projections.store.memory import MemoryStore
from storage_worker import telemetry
from storage_worker.consumer import parse_wake_ups
from storage_worker.gaps import GapPolicy
from storage_worker.storage import Storage
from storage_worker.telemetry import OTHER, RECORDED, BoundedLabels
from tests.builders import EVALUATION, event, history
from tests.storage_world import GAP_TIMEOUT, GAP_WARNING
from tests.telemetry import measuring
from tests.unit.storage_worker.measured import STRAIGHT

MOMENT = timedelta(milliseconds=250)


def judged(*scores: p.Score, **result) -> p.Completed:
    """Make a passing verdict with the scores of some evaluators."""
    return p.Completed(**{"verdict": "passed", "score": 1.0, "scores": scores, **result})


async def test_an_evaluation_that_ends_is_counted_once(world):
    """Its verdict, duration, score, evaluator results and cost are counted at its end, and not again."""
    scores = (p.Score("exact", 1.0, True), p.Score("judge", 0.0, False), p.Score("length", 3.0))
    last = event(judged(*scores), sequence=5)
    storage = world.storage()
    with measuring() as measured:
        for each in [*history(STRAIGHT)[:5], last]:
            world.xadd(each)
            world.wait(MOMENT)
            await storage.process([EVALUATION])
        await storage.process([EVALUATION])
    tests = [measured[f"eval_batch_tests{which}_total"] for which in ("", "_passed", "_failed")]
    assert tests == [1, 1, 0]
    assert measured.sum("eval_test_duration_ms", OTHER) == 5 * 250
    assert (measured.count("eval_test_score"), measured.sum("eval_test_score")) == (1, 1.0)
    assert measured["eval_stage_passed_total", "exact"] == 1
    assert measured["eval_stage_failed_total", "judge"] == 1
    assert ("eval_stage_passed_total", ("length",)) not in measured.after
    assert measured["eval_tokens_total"] == 8
    assert measured["eval_cost_usd_total"] == pytest.approx(0.001)
    assert measured["eval_storage_events_total", "applied"] == 6
    assert measured.count("eval_storage_pass_ms") == 7


async def test_every_other_end_counts_as_failed(world):
    """A failing verdict, a fault and a time-out count as failed; a negative score is recorded as zero."""
    endings: tuple[p.Completed | str, ...] = (judged(verdict="failed", score=-2.0), "failed", "timed_out")
    for number, last in enumerate(endings):
        key = f"evaluation-{number}"
        world.xadd(*history("queued provisioning running", evaluation_id=key))
        world.xadd(event(last, sequence=3, evaluation_id=key))
    with measuring() as measured:
        await world.storage().store([f"evaluation-{number}" for number in range(3)])
    assert (measured["eval_batch_tests_total"], measured["eval_batch_tests_failed_total"]) == (3, 3)
    assert (measured.count("eval_test_score"), measured.sum("eval_test_score")) == (1, 0.0)


async def test_a_worker_that_loses_a_race_counts_nothing(world):
    """Two workers read the same stream, and the evaluation is counted once."""

    class Overtaken(MemoryStore):
        """Another worker always commits first."""

        async def rows(self, evaluation_ids):
            found = await super().rows(evaluation_ids)
            if not self.scorecards:
                await Storage(world.log, other, policy).store(evaluation_ids)
            return found

    other, policy = world.tables, GapPolicy(GAP_TIMEOUT, GAP_WARNING)
    overtaken = Overtaken(world.tables.clock)
    for name in ("batches", "evaluations", "events", "scorecards", "progress"):
        setattr(overtaken, name, getattr(other, name))
    world.xadd(*history(STRAIGHT))
    with measuring() as measured:
        await world.storage(tables=overtaken).store([EVALUATION])
    assert measured["eval_storage_lost_races_total"] == 1
    assert measured["eval_batch_tests_total"] == 1
    assert measured["eval_tokens_total"] == 8


async def test_stale_and_duplicate_events_are_counted_separately(world):
    """Each event is counted by its disposition."""
    world.xadd(*history("queued provisioning running responded"), *history("queued:lost", attempt=2))
    world.xadd(*history("running", first=2), *history("scored", first=4))
    world.xadd(*history("provisioning", attempt=2, first=1) * 2)
    with measuring() as measured:
        await world.storage().store([EVALUATION])
    kinds = ("applied", "stale", "duplicate")
    assert [measured["eval_storage_events_total", kind] for kind in kinds] == [6, 1, 2]


async def test_events_out_of_order_are_counted_when_they_are_applied(world):
    """Three events are counted, whether they arrived in one pass or waited over several."""
    zeroth, first, second, third, *_ = history(STRAIGHT)
    storage = world.storage()
    with measuring() as measured:
        for part in ([zeroth, second], [third, first]):
            world.xadd(*part)
            await storage.store([EVALUATION])
    assert measured["eval_storage_reordered_total"] == 2


async def test_a_quarantined_entry_is_counted_once(world):
    """Garbage in a stream and an invalid wake-up are read twice and counted once each."""
    world.xadd(*history("queued"))
    world.xadd_fields(EVALUATION, b"event", b"{")
    woken = parse_wake_ups([(b"1-0", {b"id": b"\xff"}), (b"2-0", {b"id": EVALUATION.encode()})])
    storage = world.storage()
    with measuring() as measured:
        for _ in range(2):
            await storage.process(*woken)
    assert measured["eval_storage_quarantined_total"] == 2


async def test_histograms_get_a_sample_of_very_many_ends(world):
    """All ends are counted; only a limited number is recorded in the histograms."""
    many = 3 * RECORDED - 1
    keys = [f"evaluation-{number}" for number in range(many)]
    for key in keys:
        world.xadd(*_whole(key))
    with measuring() as measured:
        await world.storage().store(keys)
    assert measured["eval_batch_tests_total"] == many
    assert measured.count("eval_test_duration_ms", OTHER) == -(-many // 3)


def _whole(key: str) -> list[Event]:
    return history(STRAIGHT, evaluation_id=key)


def test_the_number_of_values_of_a_label_is_limited():
    """Values beyond the limit share one label; known values keep theirs."""
    labels = BoundedLabels(2)
    assert [labels.bounded(value) for value in "abcab"] == ["a", "b", OTHER, "a", "b"]


def test_every_counter_is_exported_from_the_start():
    """The first occurrence is then an increase from zero."""
    telemetry.begin()
    with measuring() as measured:
        pass
    for name in ("gaps_warned", "gaps_bridged", "quarantined", "lost_races", "reordered"):
        assert f"eval_storage_{name}_total" in measured.names
    assert measured["eval_storage_events_total", "rejected"] == 0
