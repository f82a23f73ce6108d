"""Estimates of the cost of a call before it is made. Pure.

There are two estimates, of which the lower applies. The bound: tokens of the prompt, estimated from its
length, and `max_tokens`, at the model's prices. The running maximum of observed calls, raised by a margin
that shrinks with the number of observations (1 + 2/sqrt(n)), because a maximum of few calls is a weak
estimate.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import NamedTuple

from eventlog.payloads import TokenUsage
from taskqueue.budget.contract import NOTHING, UNKNOWN, Amount, CostMaximum, nanodollars

TOKENS_PER_CHARACTER = 0.5
"""Before any is observed: twice of what English text takes."""
PROMPT_OVERHEAD = 32
"""Tokens that a provider adds to a prompt: roles, separators, the form of a tool."""
MARGIN = 2.0
_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class RequestSize:
    """The size of a request, which bounds the cost of a call."""

    characters: int = 0
    """Of everything that is sent."""
    max_output: int | None = None
    """Tokens of the longest answer; None where nothing limits it."""
    input_price: float = 0.0
    """Dollars for a million tokens."""
    output_price: float = 0.0


class Estimate(NamedTuple):
    """The amounts to reserve for a call."""

    unit: Amount = NOTHING
    least: Amount = NOTHING
    """The amount that must be left for it to be made alone: the observed maximum."""
    likely: Amount = NOTHING
    """The amount that counts as spent if its cost never becomes known."""


FREE = Estimate()


@dataclass(frozen=True, slots=True)
class Calibration:
    """The observed sizes of one kind of call."""

    tokens_per_character: float = 0.0
    output_tokens: int = 0

    def observed(self, size: RequestSize, usage: TokenUsage) -> "Calibration":
        """Add one observation; maxima are kept, so that the next estimate is rather too high."""
        per_character = max(0, usage.input_tokens - PROMPT_OVERHEAD) / max(1, size.characters)
        return Calibration(
            max(self.tokens_per_character, per_character), max(self.output_tokens, usage.output_tokens)
        )


def margin(calls: int) -> float:
    """Raise a maximum of so many observations."""
    return 1.0 + MARGIN / sqrt(max(1, calls))


def estimate(
    maximum: CostMaximum, size: RequestSize | None, calibration: Calibration, *, is_free: bool = False
) -> Estimate:
    """Estimate one call; `is_free` holds until such a call is seen to cost something."""
    bound = _bound(size, TOKENS_PER_CHARACTER, None) if size else None
    if maximum.calls == 0:
        if is_free:
            return FREE
        likely = _bound(size, TOKENS_PER_CHARACTER, (size.max_output or 0) // 4) if bound and size else None
        return Estimate(bound or Amount(UNKNOWN, UNKNOWN), NOTHING, likely or NOTHING)
    observed = Amount(maximum.cost, maximum.tokens)
    unit = _raised(observed, maximum.calls)
    if size and calibration.output_tokens:
        longest = ceil(calibration.output_tokens * margin(maximum.calls))
        by_length = _bound(size, calibration.tokens_per_character, longest)
        if by_length:  # a longer prompt than those observed costs more than they did
            unit = Amount(max(unit.cost, by_length.cost), max(unit.tokens, by_length.tokens))
    if bound and size and size.characters:
        unit = Amount(min(unit.cost, bound.cost), min(unit.tokens, bound.tokens))
    return Estimate(unit, observed, observed)


def together(estimates: Iterable[Estimate]) -> Estimate:
    """Add up the calls of one evaluation."""
    added = FREE
    for each in estimates:
        added = Estimate(*(one + other for one, other in zip(added, each, strict=True)))
    return added


def largest(estimates: Iterable[Estimate]) -> Estimate:
    """Return the larger of each figure."""
    found = FREE
    for each in estimates:
        found = Estimate(
            *(
                Amount(max(one.cost, other.cost), max(one.tokens, other.tokens))
                for one, other in zip(found, each, strict=True)
            )
        )
    return found


def _raised(observed: Amount, calls: int) -> Amount:
    by = margin(calls)
    return Amount(ceil(observed.cost * by), ceil(observed.tokens * by))


def _bound(size: RequestSize, per_character: float, output: int | None) -> Amount | None:
    """Multiply tokens by prices; None where neither `max_tokens` nor an observation bounds the answer."""
    limits = [limit for limit in (size.max_output, output) if limit is not None]
    if not limits:
        return None
    prompt = ceil(size.characters * per_character) + PROMPT_OVERHEAD
    answer = min(limits)
    usd = (prompt * size.input_price + answer * size.output_price) / _MILLION
    return Amount(nanodollars(usd), prompt + answer)
