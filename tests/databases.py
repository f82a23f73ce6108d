"""Databases that come and go, empty or with every table."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import psycopg
from psycopg import sql


@contextmanager
def fresh_database(postgres_url: str, template: str = "template1") -> Iterator[str]:
    """Lend a copy of a database on the same server, by default an empty one, under a unique name."""
    name = f"test_{uuid.uuid4().hex}"
    database = sql.Identifier(name)
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        created = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        admin.execute(created.format(database, sql.Identifier(template)))
        try:
            yield urlsplit(postgres_url)._replace(path=f"/{name}").geturl()
        finally:
            admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
