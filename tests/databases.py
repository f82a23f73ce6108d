"""Databases that come and go."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql


@contextmanager
def fresh_database(postgres_url: str) -> Iterator[str]:
    """Lend an empty database on a server, under a unique name."""
    name = f"test_{uuid.uuid4().hex}"
    database = sql.Identifier(name)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(sql.SQL("CREATE DATABASE {}").format(database))
        try:
            yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
