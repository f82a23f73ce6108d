"""JSON of other parties, read within bounds on depth and on the number of values.

A megabyte of `[],[],[]` takes twenty megabytes as objects, and a million `[` exhaust the stack of some
parsers. Values are counted before they are built, by their separators: first all of them, then without
those inside of strings.
"""

import json
import re
from pathlib import Path
from typing import Any

MAX_CONTAINERS = 100_000
MAX_VALUES = 1_000_000
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
"""Possessive, and to the end of the text where a string has none: one pass, whatever the text is."""


class UnreadableJson(ValueError):  # noqa: N818 - what the text is
    """A text that is no JSON, or JSON beyond the bounds."""


def read_json(text: bytes) -> Any:  # noqa: ANN401 - whatever JSON can hold
    """Parse a text; raises `UnreadableJson`."""
    check_values(text)
    try:
        # UTF-8 only: in other encodings, which `json` detects, separators can't be counted by their bytes.
        return json.loads(text.decode("utf-8-sig", "surrogatepass"))
    except RecursionError:
        raise UnreadableJson("the JSON is nested too deep") from None
    except ValueError as error:
        raise UnreadableJson(str(error)) from None


def read_json_file(path: Path, *, limit: int) -> Any:  # noqa: ANN401 - as above
    """Parse a file of at most so many bytes; raises `UnreadableJson` and `OSError`."""
    with path.open("rb") as file:
        text = file.read(limit + 1)
    if len(text) > limit:
        raise UnreadableJson(f"the file is longer than {limit:,} bytes")
    return read_json(text)


def check_values(text: bytes) -> None:
    """Refuse JSON with more values than a reply can have; raises `UnreadableJson`."""
    if _exceeds(text) and _exceeds(_STRING.sub(b"", text)):
        limits = f"{MAX_CONTAINERS:,} objects and lists, or {MAX_VALUES:,} values"
        raise UnreadableJson(f"the JSON has more than {limits}")


def _exceeds(text: bytes) -> bool:
    return text.count(b"[") + text.count(b"{") > MAX_CONTAINERS or text.count(b",") > MAX_VALUES
