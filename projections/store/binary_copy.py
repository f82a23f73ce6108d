"""Rows of `events` as binary COPY data, in one piece.

psycopg can do this row by row, at a price that shows: every event passes here, so the largest table has an
encoder of its own. The format is PostgreSQL's: a header, then for each row its number of
columns and each column's length and bytes, then a trailer.
"""

from collections.abc import Iterable
from datetime import UTC, date, datetime
from struct import Struct

from projections.folds.change import EventRow

_HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(2000, 1, 1)
_month = Struct(">hii").pack  # nine columns; four bytes of days since 2000
_numbers = Struct(">iiii").pack
_time = Struct(">iq").pack
_length = Struct(">i").pack


def binary_rows(rows: Iterable[EventRow]) -> bytes:
    """Encode rows for `COPY events … FROM STDIN (FORMAT binary)`."""
    parts = [_HEADER]
    words: dict[str, bytes] = {}
    for month, key, attempt, sequence, type_, verdict, occurred_at, entry_id, event in rows:
        since = occurred_at - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        parts += (
            _month(9, 4, (month - _FIRST_DAY).days),
            _text(key),
            _numbers(4, attempt, 4, sequence),
            words.get(type_) or words.setdefault(type_, _text(type_)),
            words.get(verdict) or words.setdefault(verdict, _text(verdict)),
            _time(8, micros),
            _text(entry_id),
            _length(len(event)),
            event,
        )
    parts.append(_TRAILER)
    return b"".join(parts)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _length(len(encoded)) + encoded
