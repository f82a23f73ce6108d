"""Arrays in PostgreSQL's binary format, encoded at once for each column.

psycopg inspects every element to find out the type of a list; a commit of a few changes has fifty lists.
Here the type is given. The format: dimensions, whether there are NULLs, the type of the elements, length,
lower bound, then each element's length and bytes; NULL has the length -1.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime
from struct import Struct
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format
from typing_extensions import override

_HEADER = Struct(">iiIii").pack
_NULL = b"\xff\xff\xff\xff"
_LENGTH = Struct(">i").pack
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(2000, 1, 1)


class BinaryArray(bytes):
    """An encoded array: a parameter whose type the statement gives by a cast."""


class _ArrayDumper(Dumper):
    format = Format.BINARY

    @override
    def dump(self, obj: BinaryArray) -> bytes:
        return obj


psycopg.adapters.register_dumper(BinaryArray, _ArrayDumper)


def _fixed(code: str, size: int) -> Callable[[Any], bytes]:
    pack = Struct(f">i{code}").pack
    return lambda value: pack(size, value)


def _bytes(value: bytes) -> bytes:
    return _LENGTH(len(value)) + value


def _text(value: object) -> bytes:
    return _bytes(str(value).encode())


_days, _micros = _fixed("i", 4), _fixed("q", 8)


def _date(value: date) -> bytes:
    return _days((value - _FIRST_DAY).days)


def _time(value: datetime) -> bytes:
    since = value - _EPOCH
    return _micros((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds)


_ELEMENTS: dict[str, tuple[int, Callable[[Any], bytes]]] = {
    "bool": (16, _fixed("?", 1)),
    "bytea": (17, _bytes),
    "int8": (20, _fixed("q", 8)),
    "int2": (21, _fixed("h", 2)),
    "int4": (23, _fixed("i", 4)),
    "text": (25, _text),
    "float8": (701, _fixed("d", 8)),
    "date": (1082, _date),
    "timestamptz": (1184, _time),
}
"""Of each type its oid, and how an element is encoded; numbers without a limit are sent as text."""


def binary_columns(types: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[BinaryArray]:
    """Encode rows as one array for each column."""
    columns = list(zip(*rows, strict=True)) or [()] * len(types)
    return [binary_array(type_, column) for type_, column in zip(types, columns, strict=True)]


def binary_array(type_: str, values: Sequence[Any]) -> BinaryArray:
    """Encode values of one type; None is NULL."""
    oid, encode = _ELEMENTS[type_]
    if not values:
        return BinaryArray(_HEADER(0, 0, oid, 0, 0)[:12])
    elements = [_NULL if value is None else encode(value) for value in values]
    return BinaryArray(_HEADER(1, None in values, oid, len(elements), 1) + b"".join(elements))
