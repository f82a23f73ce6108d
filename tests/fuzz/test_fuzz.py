"""The short form of fuzzing: every regression, and some hundred new inputs per target, always the same."""

import pytest

from tests.fuzz.campaign import fuzz
from tests.fuzz.target import FuzzTarget
from tests.fuzz.targets import TARGETS

EXAMPLES = 120
FEW = 25
"""Of targets that start processes, or wait out the limit of a pattern."""
SLOW = frozenset({"regex", "evaluators"})


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_input_ends_in_a_value_or_a_documented_error(target: FuzzTarget) -> None:
    """Whatever is read ends in a value or a documented error, within a bound of CPU time."""
    outcome = fuzz(target, first_seed=1, examples=FEW if target.name in SLOW else EXAMPLES)
    assert not outcome.failure
    assert outcome.examples
