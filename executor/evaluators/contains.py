"""Passes an output that contains a text: a configured one, or the expected value."""

from typing import Literal

from executor.contract import ScoringRequest
from executor.evaluators.comparison import (
    ComparisonType,
    ComparisonVerdict,
    ExtractOptions,
    expected_of,
    output_of,
)
from executor.evaluators.extract import quoted


class ContainsOptions(ExtractOptions):
    """The texts to search for."""

    value: str | tuple[str, ...] | None = None
    """One text or several; without it, the expected value."""
    match: Literal["all", "any"] = "all"
    ignore_case: bool = False


async def does_contain(options: ContainsOptions, judged: ScoringRequest) -> ComparisonVerdict:
    """Search each text in the output."""
    wanted, output = await _wanted(options, judged), await output_of(options, judged)
    missing = [text for text in wanted if _plain(options, text) not in _plain(options, output)]
    if not missing or (options.match == "any" and len(missing) < len(wanted)):
        return ComparisonVerdict(passed=True)
    return ComparisonVerdict(
        passed=False, reason=f"not in the output: {', '.join(map(quoted, missing[:5]))}"
    )


async def _wanted(options: ContainsOptions, judged: ScoringRequest) -> tuple[str, ...]:
    if options.value is None:
        return await _expected_texts(options, judged)
    return (options.value,) if isinstance(options.value, str) else options.value


async def _expected_texts(options: ContainsOptions, judged: ScoringRequest) -> tuple[str, ...]:
    """Return the items of an expected list as several texts."""
    expected = judged.case.expected
    if isinstance(expected, list) and all(isinstance(text, str) for text in expected):
        return tuple(map(str, expected))
    return (await expected_of(options, judged),)


def _plain(options: ContainsOptions, text: str) -> str:
    return text.casefold() if options.ignore_case else text


CONTAINS = ComparisonType(
    "contains",
    ContainsOptions,
    does_contain,
    needs_expected=False,
    wants=lambda options: frozenset() if options.value is not None else frozenset({"expected"}),
)
