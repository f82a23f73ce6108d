"""Estimates of what a call will cost."""

from dataclasses import replace

from taskqueue.budget.contract import (
    NOTHING,
    Amount,
    CostMaximum,
)
from taskqueue.budget.estimates import Calibration, RequestSize, estimate, margin

HAIKU = RequestSize(characters=400, max_output=1_000, input_price=1.0, output_price=5.0)


def test_an_unobserved_call_is_bounded_by_its_prompt_and_max_tokens() -> None:
    """At half a token a character; where nothing bounds the answer, nothing fits beside it."""
    found = estimate(CostMaximum(), HAIKU, Calibration())
    assert (found.unit, found.least) == (Amount(5_232_000, 1_232), NOTHING)
    assert found.likely == Amount(1_482_000, 482)
    assert estimate(CostMaximum(), replace(HAIKU, max_output=None), Calibration()).unit.cost == 10**15
    assert not estimate(CostMaximum(), None, Calibration(), is_free=True).unit


def test_observations_tighten_an_estimate_and_long_prompts_raise_it() -> None:
    """The margin shrinks with the number of calls; the bound is never exceeded."""
    observed = CostMaximum(100, 500_000, 150)
    found = estimate(observed, HAIKU, Calibration(0.25, 80))
    assert (margin(1), margin(4), margin(100)) == (3.0, 2.0, 1.2)
    assert (found.unit, found.least) == (Amount(612_000, 228), Amount(500_000, 150))
    long = estimate(observed, replace(HAIKU, characters=40_000), Calibration(0.25, 80))
    assert long.unit == Amount(10_512_000, 10_128)
