"""JSON of replies is read within bounds of depth and of size."""

import json
import time

import pytest

from providers.json_reader import MAX_CONTAINERS, UnreadableJson, read_json


@pytest.mark.parametrize(
    "text",
    [
        b"[" * 1_000_000,
        b"[" * 50_000,
        b'{"a":' * 50_000,
        b"[" + b"[]," * MAX_CONTAINERS + b"[]]",
        b"[" + b"1," * 1_000_001 + b"1]",
        b'["' + b'\\"' * 1_000_000 + b"," * 1_000_001,
        b"[1" + b"0" * 100_000 + b"]",
        b"{",
        f'["\u2200",{"[]," * MAX_CONTAINERS}[]]'.encode("utf-16-le"),
    ],
    ids=[
        *("deep", "less deep", "deep objects", "wide", "values", "an endless string", "digits", "no end"),
        "a byte of a character that is like a quote",
    ],
)
def test_json_beyond_the_bounds_is_refused_quickly(text: bytes) -> None:
    """Depth and number of values are bounded before objects are created."""
    started = time.process_time()
    with pytest.raises(UnreadableJson):
        read_json(text)
    assert time.process_time() - started < 2


def test_separators_inside_of_strings_do_not_count() -> None:
    """An answer may consist of commas and brackets."""
    answer = 'a "quoted\\" [,{' * 200_000
    assert read_json(json.dumps({"text": answer}).encode()) == {"text": answer}
