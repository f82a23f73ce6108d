"""The long form as a row of the proof."""

from collections.abc import Iterable

from tests.proof.outcome import Outcome
from tests.protocol_model.invariants import Invariant
from tests.protocol_model.scenarios import SCENARIOS
from tests.protocol_model.verdict import Verdict, documented, examine, printed

STUCK = {Invariant.ENDS, Invariant.CLEANS_UP, Invariant.ATTEMPTS_ARE_BOUNDED}
DOUBLED = {
    Invariant.KEY_APPLIED_ONCE,
    Invariant.COUNTERS_MATCH_ROW,
    Invariant.RECORDED_ANSWER_REUSED,
    Invariant.KEPT_ANSWER_AWAITED,
    Invariant.PAID_AGAIN_FOR_A_REASON,
}


def prove(limit: int) -> list[Outcome]:
    """Search every scenario up to so many states each."""
    return [outcome_of(examine(scenario, limit=limit) for scenario in SCENARIOS)]


def outcome_of(verdicts: Iterable[Verdict]) -> Outcome:
    """Count what the scenarios came to; a documented limit that no longer shows is a violation too."""
    outcome = Outcome(f"protocol model, {len(SCENARIOS)} scenarios")
    for verdict in verdicts:
        outcome.runs += 1
        for broken in verdict.unexpected:
            outcome.stuck += broken in STUCK
            outcome.doubled += broken in DOUBLED
            outcome.violations += broken not in STUCK | DOUBLED
        if verdict.unexpected:
            outcome.failures.append(f"{verdict.scenario.name}\n{printed(verdict.unexpected)}")
        for missing in documented(verdict.scenario) - verdict.stories.keys():
            outcome.violations += 1
            outcome.failures.append(f"{verdict.scenario.name}: not seen, guarantee {missing}")
    return outcome
