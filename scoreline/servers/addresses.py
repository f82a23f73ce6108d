"""The URLs of the servers that a command works with."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Servers:
    """The URLs of one Redis and one PostgreSQL."""

    redis_url: str
    postgres_url: str
