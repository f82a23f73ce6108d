"""Provoke alerts on a real fleet, a minute made a second: `python -m tests.alerts` prints the times."""

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from scoreline.local.embedded import embedded_servers
from tests.alerts.provoking import Measured, course, provoke_all
from tests.alerts.watchers import missing
from tests.databases import fresh_database


def main() -> int:
    """Run the course, and print the table."""
    if missing():
        print(f"not installed here: {missing()}", file=sys.stderr)
        return 1
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="alerts-") as scratch:
        home = Path(scratch) / "course"
        home.mkdir()
        with (
            embedded_servers(Path(scratch) / "servers") as servers,
            fresh_database(servers.postgres_url) as url,
        ):
            show(asyncio.run(_run(home, url)))
    return 0


async def _run(home: Path, url: str) -> list[Measured]:
    async with course(home, url) as here:
        return await provoke_all(here)


def show(measured: list[Measured]) -> None:
    table = Table("alert", "made by", "told", "after", "over after")
    for each in measured:
        table.add_row(
            each.alert, each.made_by, each.receiver, f"{each.fired:.1f} s", f"{each.cleared:.1f} s"
        )
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
