"""The queries, one file each."""

from functools import cache
from pathlib import Path
from typing import LiteralString

from projections import timestamps  # noqa: F401 - registers the loaders that every query's rows pass

HERE = Path(__file__).parent


@cache
def query(name: str) -> LiteralString:
    """Load a query by the name of its file; the text is ours, so it is as good as a literal."""
    return (HERE / f"{name}.sql").read_text(encoding="utf-8")
