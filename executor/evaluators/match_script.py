"""Finds the last match of a pattern: here, or as a script in a process that can be killed.

As a script it needs the standard library only: JSON with `pattern`, `flags` and `text` on its standard
input, and on its standard output the match or null.
"""

import json
import re
import sys


def last_match(pattern: re.Pattern[str], text: str) -> str | None:
    """Find the last match: its first group that matched, or the whole match if there are no groups."""
    found = None
    for found in pattern.finditer(text):  # noqa: B007 - only the last one counts
        pass
    if found is None:
        return None
    return next((group for group in found.groups() if group is not None), found[0])


if __name__ == "__main__":
    request = json.load(sys.stdin)
    json.dump(last_match(re.compile(request["pattern"], request["flags"]), request["text"]), sys.stdout)
