"""The last match of a pattern, in this process and as a script."""

import json
import re
import subprocess
import sys

import pytest

from executor.evaluators import match_script
from executor.evaluators.match_script import last_match


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        (r"\d+", "1 and 23", "23"),
        (r"A: (\w+)", "A: x, A: y", "y"),
        (r"(\d+)|([a-z]+)", "1 b", "b"),
        (r"(\d+)?=", "=", "="),
        (r"A: (\w*)", "A: x, A: ", ""),
        (r"\d+", "none", None),
    ],
)
def test_the_last_match_counts_by_its_first_group_that_matched(pattern, text, found):
    """Without such a group it is the whole match; an empty group is a match."""
    assert last_match(re.compile(pattern), text) == found


@pytest.mark.parametrize(
    ("pattern", "flags", "answer"), [("^É(.)$", re.IGNORECASE | re.MULTILINE, '"2"'), ("^É(.)$", 0, "null")]
)
def test_the_script_finds_what_the_function_finds(pattern, flags, answer):
    """Pattern, flags and text come as JSON, and so does the match."""
    request = json.dumps({"pattern": pattern, "flags": int(flags), "text": "é1\né2"})
    command = [sys.executable, "-I", match_script.__file__]
    done = subprocess.run(command, input=request, capture_output=True, text=True, check=True)
    assert done.stdout == answer
