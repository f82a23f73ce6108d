"""No order of steps and no fault within the budget breaks a promise of the protocol: a bounded share.

`python -m tests.protocol_model` goes much deeper.
"""

import pytest

from tests.protocol_model.invariants import Invariant
from tests.protocol_model.proof import outcome_of
from tests.protocol_model.scenarios import BY_NAME, SCENARIOS
from tests.protocol_model.verdict import examine, printed

SHARE = 400
"""States a scenario; what is cut short is judged by what it saw, but not for being stuck."""
WHOLE = 20_000
SMALL = {
    "no fault",
    "unpublished, 2 coordinator crash",
    "1 executor crash",
    "one process, 1 duplicate task, 1 lost reply",
    "2 storage, 2 reorder, 2 storage crash",
    "1 cancel, 1 coordinator crash",
    "1 Redis lost",
}
"""Scenarios small enough to be searched to their end every time."""


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_order_of_steps_breaks_a_promise(scenario):
    """Whatever comes first, and whatever fails meanwhile: nothing doubled, nothing stuck."""
    is_small = scenario.name in SMALL
    verdict = examine(scenario, limit=WHOLE if is_small else SHARE)
    assert not verdict.unexpected, printed(verdict.unexpected)
    assert verdict.is_complete or not is_small


def test_a_grace_that_is_too_short_is_paid_for():
    """What a live executor keeps is paid for again if it is not awaited: there, and nowhere else."""
    hurried = examine(BY_NAME["1 Redis lost, 1 grace too short"], limit=WHOLE, stop_when_broken=True)
    assert hurried.stories.keys() == {Invariant.KEPT_ANSWER_AWAITED}
    assert outcome_of([hurried]).is_clean


def test_scenarios_have_names_of_their_own():
    """None hides another."""
    assert len(BY_NAME) == len(SCENARIOS)
