"""What can be wrong with a dataset.

CommandError
├── DatasetError   the whole of it: no such file, unreadable, no list of rows in it
└── RowError         one row: where it stands, and what is wrong with it
"""

from scoreline.command_error import CommandError


class DatasetError(CommandError):
    """A dataset that can't be read at all."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = str(path)
        self.reason = reason


class RowError(CommandError):
    """A row that can't be a case, and where it stands."""

    def __init__(self, path: object, line: int, reason: str, *, unit: str = "line") -> None:
        super().__init__(f"{path}, {unit} {line}: {reason}")
        self.path = str(path)
        self.line = line
        self.reason = reason
        self.unit = unit
        """What `line` counts: lines of text, or records of a document."""


class Unfit(ValueError):  # noqa: N818 - a sentence on its way to a `RowError`, which knows the place
    """What is wrong with a row, raised by code that does not know its position."""
