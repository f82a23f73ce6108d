"""Passes an output that a pattern matches: a configured one, or the expected value."""

from executor.contract import Permanent, ScoringRequest
from executor.evaluators.comparison import (
    ComparisonType,
    ComparisonVerdict,
    ExtractOptions,
    expected_of,
    output_of,
)
from executor.evaluators.extract import Pattern, compile_pattern, find_last, quoted


class RegexOptions(ExtractOptions):
    """The pattern to search for."""

    pattern: Pattern | None = None
    """Without it, the expected value is the pattern."""
    ignore_case: bool = False


async def does_match(options: RegexOptions, judged: ScoringRequest) -> ComparisonVerdict:
    """Search the pattern in the output."""
    pattern = options.pattern if options.pattern is not None else await expected_of(options, judged)
    try:
        compiled = compile_pattern(pattern, ignore_case=options.ignore_case)
    except ValueError as error:
        raise Permanent("bad_pattern", str(error)) from None
    output = await output_of(options, judged)
    if await find_last(compiled, output) is not None:
        return ComparisonVerdict(passed=True)
    return ComparisonVerdict(
        passed=False, reason=f"{quoted(pattern)} does not match the output: {quoted(output)}"
    )


REGEX = ComparisonType(
    "regex",
    RegexOptions,
    does_match,
    needs_expected=False,
    wants=lambda options: frozenset() if options.pattern is not None else frozenset({"expected"}),
)
