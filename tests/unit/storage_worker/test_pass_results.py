"""Counts of a pass, and the evaluations that it ended."""

from datetime import date

from eventlog.codec import RawEntry
from storage_worker.pass_results import EndedEvaluation, PassCounts, ended_evaluations
from storage_worker.stream_diff import Resolution, diff_stream, resolve
from tests.builders import BATCH, EVALUATION, history, wire

MONTH = date(2026, 1, 1)
STRAIGHT = "queued provisioning running responded scored completed"


def resolved(words: str, evaluation_id: str = EVALUATION) -> tuple[list[RawEntry], Resolution]:
    """Resolve the stream of a new evaluation."""
    raw = wire(history(words, evaluation_id=evaluation_id))
    diff = diff_stream(evaluation_id, raw, None)
    return raw, resolve(diff, shard=0, months={BATCH: MONTH}, stored={}, bridge_until_ms=0)


def test_a_lost_race_is_counted_and_its_events_are_not():
    """Another worker has committed them, and counts them."""
    _, won = resolved(STRAIGHT, "won")
    _, lost = resolved(STRAIGHT, "lost")
    counts = PassCounts()
    counts.count([won, lost, Resolution(None)], {"lost"})
    assert (counts.passes, counts.lost_races, counts.events) == (1, 1, {"applied": 6})


def test_counts_of_passes_add_up():
    """Open gaps are a level and not a sum, so a pass does not add them."""
    total = PassCounts(passes=1, duplicates=2, gaps_open=5)
    total.events["applied"] = 3
    other = PassCounts(passes=1, duplicates=1, bridged=1, quarantined=4, reordered=6, gaps_open=9)
    other.events.update(applied=1, stale=2)
    total.add(other)
    plain = total.as_dict()
    assert plain["events"] == {"applied": 4, "stale": 2}
    assert [plain[name] for name in ("passes", "duplicates", "bridged", "quarantined", "reordered")] == [
        *(2, 3, 1, 4, 6)
    ]
    assert plain["gaps_open"] == 5


def test_only_endings_that_this_pass_has_committed_are_selected():
    """An open evaluation has not ended, and that of a lost race belongs to another worker."""
    passed = [resolved(STRAIGHT, "won"), resolved(STRAIGHT, "lost"), resolved("queued", "open")]
    streams, resolutions = zip(*passed, strict=True)
    [ended] = ended_evaluations(streams, resolutions, {"lost"})
    assert (ended.card.evaluation_id, ended.batch_id, ended.ending.type) == ("won", BATCH, "completed")


def test_duration_and_case_are_read_from_the_stream():
    """The entries of `wire` arrive a millisecond apart; without its opening the case is unknown."""
    raw, resolution = resolved(STRAIGHT)
    [ended] = ended_evaluations([raw], [resolution], set())
    assert (ended.duration_ms, ended.case_id) == (5, "case-1")
    assert ended._replace(stream=raw[1:]).case_id is None
    assert EndedEvaluation(ended.card, ended.ending, "0-0", raw).duration_ms == 0
