"""Passes an output that is the expected value."""

from executor.contract import ScoringRequest
from executor.evaluators.comparison import (
    ComparisonType,
    ComparisonVerdict,
    ExtractOptions,
    expected_of,
    output_of,
)
from executor.evaluators.extract import quoted


class ExactOptions(ExtractOptions):
    """Differences to ignore."""

    strip: bool = True
    ignore_case: bool = False


async def is_equal(options: ExactOptions, judged: ScoringRequest) -> ComparisonVerdict:
    """Compare the output with the expected value."""
    expected, output = await expected_of(options, judged), await output_of(options, judged)
    if _plain(options, output) == _plain(options, expected):
        return ComparisonVerdict(passed=True)
    return ComparisonVerdict(passed=False, reason=f"expected {quoted(expected)}, got {quoted(output)}")


def _plain(options: ExactOptions, text: str) -> str:
    text = text.strip() if options.strip else text
    return text.casefold() if options.ignore_case else text


EXACT = ComparisonType("exact", ExactOptions, is_equal)
