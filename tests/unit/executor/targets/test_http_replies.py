"""Replies of HTTP targets."""

import pytest

from executor.targets.http_replies import text_encoding


@pytest.mark.parametrize(
    ("charset", "read_as"),
    [("latin-1", "iso8859-1"), ("UTF8", "utf-8"), ("zlib", "utf-8"), ("bz2", "utf-8"), ("idna", "utf-8"),
     ("hex", "utf-8"), ("unicode_escape", "utf-8"), ("no such", "utf-8"), ("a\0b", "utf-8"),
     (None, "utf-8")],
)  # fmt: skip
def test_a_charset_is_an_encoding_of_text(charset: str | None, read_as: str) -> None:
    """Python has codecs that decompress, under names that a charset may have."""
    assert text_encoding(charset) == read_as
