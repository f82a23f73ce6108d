"""The dashboards' SQL on a real Postgres, as the role that Grafana has."""

from collections import Counter
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from bench.dashboards import READER, fill, questions
from grafana.expansion import Window, expand

NOW = datetime(2026, 11, 16, tzinfo=UTC)
WINDOW = Window(NOW, NOW + timedelta(hours=1), timedelta(seconds=15), timedelta(minutes=1))


async def test_the_reader_may_run_every_query_of_the_dashboards(postgres_url: str) -> None:
    """This holds on an empty database, too, and with a batch name that tries SQL injection."""
    values = {"batch": "b'; DROP TABLE batches; --", "evaluation": "e' OR 'a'='a"}
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        conn.execute(READER)
        for query in questions():
            conn.execute(expand(query.text, WINDOW, values).encode()).fetchall()
        assert conn.execute("SELECT count(*) FROM batches").fetchone() == (0,)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            conn.execute("DELETE FROM batches")


async def test_a_small_batch_is_sampled_whole_and_a_large_one_all_over(postgres_url: str) -> None:
    """The sample of a large one has both targets equally often, from its beginning to its end."""
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        fill(conn, "small", 100)
        fill(conn, "large", 4_000)
        [(count,)] = conn.execute("SELECT count(*) FROM sampled('small', 500)").fetchall()
        assert count == 100
        rows = conn.execute("SELECT evaluation_id, variant FROM sampled('large', 500)").fetchall()
        numbers = [int(row[0].rpartition(".")[2]) for row in rows]
        assert len(set(numbers)) == len(rows) == 500
        assert Counter(number // 400 for number in numbers if number < 4_000).most_common()[-1][1] >= 45
        assert min(Counter(row[1] for row in rows).values()) > 200


async def test_a_batch_of_foreign_writers_is_sampled_too(postgres_url: str) -> None:
    """Its ids have no known form: the first ones are sampled."""
    with psycopg.connect(postgres_url, autocommit=True) as conn:
        fill(conn, "external", 30)
        conn.execute("UPDATE batches SET kind = 'external', total = NULL")
        [(first, count)] = conn.execute(
            "SELECT min(evaluation_id), count(*) FROM sampled('external', 20)"
        ).fetchall()
        assert (first, count) == ("external.00000001", 20)
