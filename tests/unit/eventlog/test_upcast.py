"""Golden histories: events of every schema version stay readable, and keep their meaning."""

from pathlib import Path

import pytest

from eventlog import payloads as p
from eventlog import states
from eventlog.codec import decode_body
from eventlog.events import SCHEMA_VERSION, Event

HISTORIES = Path(__file__).parents[2] / "histories"


def golden(name: str) -> list[Event]:
    return [decode_body(line) for line in (HISTORIES / f"{name}.jsonl").read_bytes().splitlines()]


def ending_of(name: str) -> states.State:
    state: states.State = states.UnopenedState()
    for event in golden(name):
        state = states.evolve(state, event)
    return state


JUDGED = p.Completed(
    verdict="passed",
    score=0.75,
    scores=(
        p.Score(evaluator="exact", score=1.0, passed=True),
        p.Score(
            evaluator="llm_judge",
            score=0.5,
            reason="terse",
            usage=p.TokenUsage(input_tokens=90, output_tokens=12),
            cost_usd=0.002,
        ),
    ),
    usage=p.TokenUsage(input_tokens=97, output_tokens=13),
    cost_usd=0.003,
)
ENDINGS = {
    "v1_completed": states.CompletedState(
        1, 3, p.Completed(verdict="passed", exit_code=0, output="forty-two")
    ),
    "v1_failed": states.FailedState(
        1, 3, p.ErrorDetail(kind="error", message="exit status 137: out of memory")
    ),
    "v2_completed": states.CompletedState(
        1, 3, p.Completed(verdict="passed", score=1.0, output="42", exit_code=0, latency_ms=812.5)
    ),
    "v2_retried": states.CompletedState(3, 3, p.Completed(verdict="failed", score=0.0, exit_code=1)),
    "v2_scored": states.CompletedState(1, 6, JUDGED),
    "v3_answered": states.CompletedState(1, 6, JUDGED),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_a_golden_history_replays_to_its_ending(name):
    """Every stored line decodes, and the state machine accepts all of them in order."""
    assert ending_of(name) == ENDINGS[name]


def test_every_golden_history_has_its_expected_ending():
    """Every file of the folder has an entry in the table above."""
    assert {path.stem for path in HISTORIES.glob("*.jsonl")} == set(ENDINGS)


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION + 1))
def test_every_schema_version_has_a_golden_history(version):
    """A new schema version needs a history recorded with it."""
    assert list(HISTORIES.glob(f"v{version}_*.jsonl"))


def test_version_1_is_upcast_to_the_current_schema():
    """Untyped fields and seconds become typed payloads and aware times."""
    queued, claim, running, _ = golden("v1_completed")
    assert queued.data == p.Queued(case=p.Case(id="arithmetic-7"))
    assert claim.data == p.Provisioning(executor="executor-3", nonce="v1:executor-3")
    assert running.data == p.Running(target="container", process="c0ffee42")
    assert claim.occurred_at.isoformat() == "2025-01-01T00:00:00.250000+00:00"
    assert (claim.source, claim.schema_version) == ("executor", SCHEMA_VERSION)


def test_a_version_1_case_without_a_name_is_named_after_its_evaluation():
    """Early executors omitted the case's id."""
    assert golden("v1_failed")[0].data == p.Queued(case=p.Case(id="golden-v1-failed"))


def test_a_retried_evaluation_replays_through_these_phases():
    """The evaluation is retried once, times out, is reopened by an operator, and completes."""
    state: states.State = states.UnopenedState()
    phases = []
    for event in golden("v2_retried"):
        state = states.evolve(state, event)
        phases.append((state.attempt, states.phase_of(state).value))
    assert phases == [
        *[(1, phase) for phase in ("queued", "provisioning", "running", "retrying")],
        *[(2, phase) for phase in ("queued", "provisioning", "timed_out")],
        *[(3, phase) for phase in ("queued", "provisioning", "running", "completed")],
    ]
