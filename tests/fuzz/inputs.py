"""Inputs for fuzzing: damaged valid texts, JSON of any shape, and tokens that parsers stumble on."""

import json
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st

TOKENS: Sequence[bytes] = (
    b"[", b"]", b"{", b"}", b'"', b"'", b",", b":", b": ", b"- ", b"\n", b"\r", b"\r\n", b"\t", b" ", b"\\",
    b"\x00", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xfe\xff", b"\x1f\x8b", b"\xe2\x80\xa8",
    b"\\ud800", b"\\u0000", b"\\x", b"NaN", b"Infinity", b"-0", b"1e999", b"1e-999", b"0x", b"0b_", b"1:59",
    b"99999999999999999999", b"9" * 400, b"null", b"true", b"[]", b"{}", b'""', b"<<: ", b"&a ", b"*a",
    b"!!int ", b"!!bool ", b"!!python/object:os.system ", b"! ", b"%TAG ! x\n", b"---\n", b"...\n", b"? ",
    b"| ", b"> ", b"# ", b"=", b"~", b"{input}", b"{{", b"{a.b.0}", b"..", b"(a+)+$", b"(?:", b"\\d", b"[^",
    b"2026-01-01T00:00:00Z", b"0000-00-00", b"Thu, 01 Jan 9999 23:59:60 -2359", b"1d", b"ms",
)  # fmt: skip
"""What makes parsers stumble."""
REPEATS = (1, 2, 150, 5_000)

KEYS = st.text(max_size=6) | st.sampled_from(
    ["id", "input", "type", "content", "text", "usage", "choices", "message", "delta", "index", "error"]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**53 + 1, -1, 10**40, 1e308, 5e-324])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=12)
)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
"""Any JSON value, with the names that replies have."""


def packed(value: object) -> bytes:
    """Write a value as JSON, halves of surrogate pairs escaped."""
    return json.dumps(value).encode()


@st.composite
def damaged(draw: Any, texts: Sequence[bytes]) -> bytes:
    """Take a valid text, and cut, repeat or put in a few pieces."""
    text = bytearray(draw(st.sampled_from(texts)))
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(text)))
        match draw(st.sampled_from(["put", "put", "cut", "copy", "end", "bytes"])):
            case "put":
                text[at:at] = draw(st.sampled_from(TOKENS)) * draw(st.sampled_from(REPEATS))
            case "cut":
                del text[at : at + draw(st.integers(1, 20))]
            case "copy":
                text[at:at] = text[at : at + draw(st.integers(1, 40))] * draw(st.sampled_from(REPEATS[:3]))
            case "end":
                del text[at:]
            case _:
                text[at : at + 1] = draw(st.binary(max_size=4))
    return bytes(text[:200_000])


def texts(*valid: bytes) -> st.SearchStrategy[bytes]:
    """Damage valid texts; now and then any bytes at all."""
    return damaged(valid) | st.binary(max_size=60)


def documents(*valid: object) -> st.SearchStrategy[bytes]:
    """Damage valid JSON documents, replace a part of them by any value, or take any value at all."""
    whole = [packed(each) for each in valid]
    return damaged(whole) | st.sampled_from(valid).flatmap(_with_any_part).map(packed) | JSON.map(packed)


@st.composite
def _with_any_part(draw: Any, value: Any) -> Any:
    """Replace one part of a document."""
    if not value or not isinstance(value, dict | list) or draw(st.integers(0, 4)) == 0:
        return draw(JSON)
    keys = sorted(value) if isinstance(value, dict) else range(len(value))
    key = draw(st.sampled_from(list(keys)))
    changed = dict(value) if isinstance(value, dict) else list(value)
    changed[key] = draw(_with_any_part(value[key]))
    return changed
