"""Errors of the database, as callers handle them."""


class DatabaseUnavailable(Exception):  # noqa: N818 - a state of the world
    """The database is unreachable or did not answer: the transaction may or may not have committed."""


class UnstorableData(Exception):  # noqa: N818 - names the data
    """The database rejected the data itself; a retry would not help."""


class UnknownBatch(Exception):  # noqa: N818 - what was asked for
    """There is no such batch."""

    def __init__(self, batch_id: str) -> None:
        super().__init__(f"There is no batch {batch_id!r}.")
        self.batch_id = batch_id
