"""Passes an output that is the expected number, however it is written.

`1,234.50`, `$1234.5`, `1234.5 %` and `1234.5.` are one number; `a dozen`, `3/4` and `about 5` are none:
`extract` cuts the number out of a longer text. Numbers are compared as written, in decimal, so a difference
is never one of binary fractions; `tolerance` and `relative_tolerance` allow for more.
"""

import re
from decimal import Decimal, InvalidOperation

from pydantic import Field

from executor.contract import Permanent, ScoringRequest
from executor.evaluators.comparison import (
    ComparisonType,
    ComparisonVerdict,
    ExtractOptions,
    expected_of,
    output_of,
)
from executor.evaluators.extract import quoted

MINUS = "\u2212"
"""The sign that typesetters use."""
LONGEST = 400
"""Characters of the longest number that is taken for one."""
_NUMBER = re.compile(
    r"([-+\u2212]?)\s?[$€£]?\s?([-+\u2212]?)((?:\d[\d,]*)?(?:\.\d+)?(?:[eE][-+]?\d{1,4})?)\s?%?\.?"
)


class NumericOptions(ExtractOptions):
    """The tolerance of a number."""

    tolerance: float = Field(default=0.0, ge=0)
    relative_tolerance: float = Field(default=0.0, ge=0)
    """As a part of the expected number."""


async def is_the_number(options: NumericOptions, judged: ScoringRequest) -> ComparisonVerdict:
    """Compare the number in the output with the expected one."""
    expected = await expected_of(options, judged)
    wanted = number_in(expected)
    if wanted is None:
        raise Permanent("bad_expected", f"the expected value is not a number: {quoted(expected)}")
    output = await output_of(options, judged)
    got = number_in(output)
    if got is None:
        return ComparisonVerdict(passed=False, reason=f"the output is not a number: {quoted(output)}")
    allowed = max(Decimal(options.tolerance), Decimal(options.relative_tolerance) * abs(wanted))
    if got == wanted or abs(got - wanted) <= allowed:
        return ComparisonVerdict(passed=True)
    return ComparisonVerdict(passed=False, reason=f"expected {quoted(expected)}, got {quoted(output)}")


def number_in(text: str) -> Decimal | None:
    """Read a number as people write it; None if it is none."""
    text = text.strip()
    match = _NUMBER.fullmatch(text) if len(text) <= LONGEST else None
    if match is None or not match[3] or (match[1] and match[2]):
        return None
    try:
        return Decimal(f"{match[1] or match[2]}{match[3]}".replace(",", "").replace(MINUS, "-"))
    except InvalidOperation:  # an exponent, a comma or nothing, but no digit
        return None


NUMERIC = ComparisonType("numeric", NumericOptions, is_the_number)
