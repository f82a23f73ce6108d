"""The comparison of two evaluations, or of two attempts."""

import pytest

from eventlog import payloads as p
from scoreline.command_error import CommandError
from scoreline.reports.replay.comparison import HistoryComparison, compare, sides
from scoreline.reports.replay.history import EvaluationHistory
from tests.builders import history
from tests.replaying import Scene
from tests.unit.scoreline.reports.replay.compared_histories import stored_history

LIFE = "queued provisioning running responded scored completed"


async def retried() -> EvaluationHistory:
    """Return the history of an evaluation with two attempts."""
    scene = Scene()
    scene.arrive(*history("queued provisioning running retrying"))
    scene.arrive(*history("queued:retry provisioning running responded completed", attempt=2))
    await scene.store()
    return scene.replayed()


def differences(comparison: HistoryComparison) -> dict[int, tuple[str, ...]]:
    """Return the fields that differ, by sequence."""
    return {pair.key[1]: pair.differs for pair in comparison.pairs if pair.differs}


async def test_two_equal_evaluations_have_no_differences():
    """Ids, nonces and processes differ between any two runs, and are not compared."""
    claim = p.Provisioning(executor="executor-1", nonce="another")
    left = await stored_history(*LIFE.split())
    right = await stored_history("queued", claim, *LIFE.split()[2:], evaluation_id="two")
    comparison = compare(*sides((left, None), (right, None)))
    assert differences(comparison) == {}
    assert comparison.results[0] == comparison.results[1]
    assert comparison.output == ()


async def test_payloads_are_compared_field_by_field():
    """The fields that differ are listed by sequence."""
    answer = p.Responded(output="5", usage=p.TokenUsage(input_tokens=7, output_tokens=2), cost_usd=0.001)
    left = await stored_history("queued", "provisioning", "running", "responded")
    right = await stored_history("queued", "provisioning", "running", answer, evaluation_id="two")
    comparison = compare(*sides((left, None), (right, None)))
    assert differences(comparison) == {3: ("output", "usage")}
    assert comparison.output[2:] == ("@@ -1 +1 @@", "-4", "+5")
    assert [side.tokens for side in comparison.results] == [8, 9]


async def test_a_different_event_and_an_event_on_one_side_only_are_distinguished():
    """One evaluation ran on where the other failed: `event` at 2, `right only` at 3."""
    left = await stored_history("queued", "provisioning", "failed")
    right = await stored_history("queued", "provisioning", "running", "completed", evaluation_id="two")
    comparison = compare(*sides((left, None), (right, None)))
    assert differences(comparison) == {2: ("event",), 3: ("right only",)}
    failed, completed = comparison.results
    assert (failed.verdict, completed.verdict) == (None, "passed")
    assert failed.error == "permanent: no such model"


async def test_two_attempts_are_aligned_by_sequence():
    """Entries of the same sequence in both attempts are paired."""
    replayed = await retried()
    comparison = compare(*sides((replayed, 1), (replayed, 2)))
    assert [pair.key for pair in comparison.pairs] == [(0, n) for n in range(5)]
    assert differences(comparison) == {0: ("reason",), 3: ("event",), 4: ("right only",)}
    assert [side.state for side in comparison.results] == ["retrying", "completed"]
    assert comparison.left.label == "evaluation-1@1"


async def test_a_late_event_and_an_applied_one_differ_in_their_verdict():
    """The same event differs in its verdict where it arrived after the gap was bridged."""
    scene = Scene()
    events = history(LIFE)
    scene.arrive(*events[:2], events[5])
    scene.wait(seconds=31)
    await scene.store()
    scene.arrive(events[2])
    await scene.store()
    comparison = compare(*sides((scene.replayed(), None), (await stored_history(*LIFE.split()), None)))
    assert differences(comparison)[2] == ("verdict",)
    assert [side.bridged for side in comparison.results] == [True, False]


async def test_an_attempt_against_a_whole_evaluation_takes_its_last_attempt():
    """Where one side names an attempt, the other defaults to its last, different within one evaluation."""
    replayed, other = await retried(), await stored_history(*LIFE.split(), evaluation_id="two")
    assert [side.attempt for side in sides((replayed, 1), (other, None))] == [1, 1]
    assert [side.attempt for side in sides((replayed, None), (replayed, 2))] == [1, 2]
    assert [side.attempt for side in sides((replayed, None), (replayed, 1))] == [2, 1]
    with pytest.raises(CommandError, match="no other attempt"):
        sides((other, None), (other, 1))
