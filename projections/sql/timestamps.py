"""Timestamps read from PostgreSQL: those that Python cannot represent are clamped instead of raised.

PostgreSQL's `timestamptz` reaches from 4713 BC to AD 294276 and knows infinity. One such value in a page
of rows would otherwise fail the whole page. Importing this module registers the loaders for every
connection of the process.
"""

from datetime import datetime
from struct import Struct

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

from eventlog.time_range import EARLIEST, LATEST, clamped

_micros = Struct(">q").unpack
_TYPE = "timestamptz"


def _driver_loader(wire: Format) -> type[Loader]:
    oid = psycopg.adapters.types[_TYPE].oid
    loader = psycopg.adapters.get_loader(oid, wire)
    assert loader is not None  # noqa: S101 - the driver knows its own types
    return loader  # type: ignore[return-value]  # the C loaders keep the protocol without the base class


_DRIVER = {wire: _driver_loader(wire) for wire in (Format.TEXT, Format.BINARY)}


class ClampedTimestamptz(Loader):
    """Reads the text form."""

    format = Format.TEXT

    def __init__(self, oid: int, context: psycopg.abc.AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._load = _DRIVER[self.format](oid, context).load

    def load(self, data: Buffer) -> datetime:
        """Read a time as the driver does; one that it refuses is the nearest that Python has."""
        try:
            return clamped(self._load(data))
        except (psycopg.DataError, OverflowError, ValueError):
            return EARLIEST if self._is_early(bytes(data)) else LATEST

    def _is_early(self, data: bytes) -> bool:
        return data.endswith(b"BC") or data.startswith((b"-", b"000"))


class ClampedTimestamptzBinary(ClampedTimestamptz):
    """Reads the binary form: microseconds since 2000."""

    format = Format.BINARY

    def _is_early(self, data: bytes) -> bool:
        return bool(_micros(data)[0] < 0)


psycopg.adapters.register_loader(_TYPE, ClampedTimestamptz)
psycopg.adapters.register_loader(_TYPE, ClampedTimestamptzBinary)
