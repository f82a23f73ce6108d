"""Timestamps of PostgreSQL that Python cannot represent are clamped, in both wire formats."""

from datetime import UTC, datetime, timedelta
from struct import pack

import psycopg
import pytest

from eventlog.time_range import EARLIEST, LATEST
from projections.sql.timestamps import ClampedTimestamptz, ClampedTimestamptzBinary

OID = psycopg.adapters.types["timestamptz"].oid
ORDINARY = datetime(2026, 11, 16, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"2026-11-16 12:30:00+00", ORDINARY),
        (b"-infinity", EARLIEST),
        (b"0044-03-15 12:00:00+00 BC", EARLIEST),
        (b"0001-01-01 00:00:00+01", EARLIEST),
        (b"9999-12-31 23:59:59-05", LATEST),
        (b"20000-01-01 00:00:00+00", LATEST),
        (b"infinity", LATEST),
    ],
)
def test_the_text_form_is_clamped_to_the_nearer_end(text: bytes, expected: datetime) -> None:
    """An ordinary time is read as the driver does."""
    assert ClampedTimestamptz(OID).load(text) == expected


@pytest.mark.parametrize(
    ("micros", "expected"),
    [
        ((ORDINARY - datetime(2000, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1), ORDINARY),
        (-(2**63), EARLIEST),
        (-(10**18), EARLIEST),
        (10**18, LATEST),
        (2**63 - 1, LATEST),
    ],
)
def test_the_binary_form_is_clamped_to_the_nearer_end(micros: int, expected: datetime) -> None:
    """Its sign separates past from future; both infinities are its extreme values."""
    assert ClampedTimestamptzBinary(OID).load(pack(">q", micros)) == expected


def test_every_connection_uses_the_clamped_loaders() -> None:
    """Importing the module registers them for the process."""
    for wire, loader in ((0, ClampedTimestamptz), (1, ClampedTimestamptzBinary)):
        assert psycopg.adapters.get_loader(OID, psycopg.pq.Format(wire)) is loader
