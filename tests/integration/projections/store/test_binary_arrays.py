"""Arrays in PostgreSQL's binary format: the server reads what was encoded."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest
from psycopg import AsyncConnection

from projections.store.binary_arrays import binary_array, binary_columns

CASES: list[tuple[str, list[Any]]] = [
    ("bool", [True, False, None]),
    ("bytea", [b"", b"\x00\xff", None]),
    ("int2", [-(2**15), 2**15 - 1, None]),
    ("int4", [-(2**31), 2**31 - 1, None]),
    ("int8", [-(2**63), 2**63 - 1, None]),
    ("text", ["", "naïve \N{GRINNING FACE} 'quoted', {braced}", None]),
    ("float8", [0.1, -1e308, None]),
    ("date", [date(1, 1, 2), date(2000, 1, 1), date(9999, 12, 30), None]),
    (
        "timestamptz",
        [datetime(1999, 12, 31, 23, 59, 59, 999_999, UTC), datetime(2026, 11, 18, 9, 30, tzinfo=UTC), None],
    ),
]


@pytest.mark.parametrize(("type_", "values"), CASES, ids=[type_ for type_, _ in CASES])
@pytest.mark.parametrize("size", [0, 1, None])
async def test_the_server_reads_what_was_encoded(
    postgres_url: str, type_: str, values: list[Any], size: int | None
) -> None:
    """Every type, with NULL, of no element and of one."""
    given = values[:size]
    async with await AsyncConnection.connect(postgres_url) as conn:
        cursor = await conn.execute(f"SELECT %b::{type_}[]".encode(), [binary_array(type_, given)])
        assert await cursor.fetchone() == (given,)


async def test_a_time_of_any_zone_is_the_same_instant(postgres_url: str) -> None:
    """Writers may be in any time zone."""
    moment = datetime(2026, 11, 18, 9, 30, tzinfo=timezone(timedelta(hours=-7)))
    async with await AsyncConnection.connect(postgres_url) as conn:
        cursor = await conn.execute("SELECT %b::timestamptz[]", [binary_array("timestamptz", [moment])])
        assert await cursor.fetchone() == ([moment],)


async def test_a_number_without_a_limit_is_sent_as_text(postgres_url: str) -> None:
    """Sums of money are exact, however long they are."""
    amount = Decimal("123456789012345678901234567890.000000000000000001")
    async with await AsyncConnection.connect(postgres_url) as conn:
        cursor = await conn.execute("SELECT (%b::text[])[1]::numeric", [binary_array("text", [amount])])
        assert await cursor.fetchone() == (amount,)


def test_rows_become_one_array_for_each_column() -> None:
    """Also where there is no row: the statement has as many parameters."""
    rows = [("a", 1), ("b", None)]
    assert binary_columns(("text", "int4"), rows) == [
        binary_array("text", ["a", "b"]),
        binary_array("int4", [1, None]),
    ]
    assert binary_columns(("text", "int4"), []) == [binary_array("text", []), binary_array("int4", [])]
