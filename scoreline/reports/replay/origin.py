"""Where a history is read."""

from enum import StrEnum


class Origin(StrEnum):
    """Which of the servers are asked."""

    BOTH = "both"
    POSTGRES = "postgres"
    REDIS = "redis"
