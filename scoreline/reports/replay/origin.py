"""The servers from which a history is read."""

from enum import StrEnum


class Origin(StrEnum):
    """Which servers are queried."""

    BOTH = "both"
    POSTGRES = "postgres"
    REDIS = "redis"
