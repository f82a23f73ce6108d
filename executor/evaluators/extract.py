r"""Extraction of the part of a text to compare: the last match of a user's pattern.

    extract: 'A:\s*(.+)$'     the last line that starts with "A:", without its "A:"

The first group is extracted, or the whole match if there is no group; `^` and `$` match at lines. A pattern
may backtrack without end: a short text is searched in this process under a limit of CPU time, a long one in
a process that is killed at a deadline. Either way the fault is `Permanent("slow_pattern")`.
"""

import asyncio
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator
from pydantic_core import from_json, to_json

from executor.contract import Permanent
from executor.evaluators.cpu_limit import OutOfTime, can_limit, cpu_limit
from executor.evaluators.match_script import last_match

LIMIT = 0.3
"""Seconds of CPU time for one search here."""
TIMEOUT = 5.0
"""Seconds for one search in a process of its own."""
LONG = 20_000
"""Characters from which on it may take the matcher too long to notice that its time is up."""
QUOTE = 80
_SCRIPT = Path(__file__).with_name("match_script.py")


def compile_pattern(pattern: str, *, ignore_case: bool = False) -> re.Pattern[str]:
    """Read a pattern; raises `ValueError` with a sentence."""
    try:
        return re.compile(pattern, re.MULTILINE | (re.IGNORECASE if ignore_case else 0))
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{quoted(pattern)} is not a regular expression: {error}") from None


def _checked(pattern: str) -> str:
    compile_pattern(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_checked)]
"""A regular expression, as an option."""


async def find_last(pattern: re.Pattern[str], text: str) -> str | None:
    """Find what the last match cuts out; raises `Permanent` if it takes too long."""
    if len(text) >= LONG or not can_limit():
        return await _find_elsewhere(pattern, text)
    try:
        with cpu_limit(LIMIT):
            return last_match(pattern, text)
    except OutOfTime:
        raise _too_slow(pattern) from None


async def _find_elsewhere(pattern: re.Pattern[str], text: str) -> str | None:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(_SCRIPT)), stdin=pipe, stdout=pipe, env={}
    )
    try:
        async with asyncio.timeout(TIMEOUT):
            request = {"pattern": pattern.pattern, "flags": pattern.flags & ~re.UNICODE, "text": text}
            output, _ = await process.communicate(to_json(request))
    except TimeoutError:
        raise _too_slow(pattern) from None
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    found: str | None = from_json(output)
    return found


def _too_slow(pattern: re.Pattern[str]) -> Permanent:
    return Permanent(
        "slow_pattern",
        f"the pattern {quoted(pattern.pattern)} takes too long on this text; avoid repeats of repeats",
    )


def quoted(text: str) -> str:
    """Quote the beginning of a text, for a reason."""
    return repr(text if len(text) <= QUOTE else f"{text[:QUOTE]}…")
