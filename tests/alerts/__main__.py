"""`python -m tests.alerts`: run the scenario and print how long each alert took."""

import asyncio
import logging
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from scoreline.local.embedded import embedded_servers
from tests.alerts.monitoring_stack import missing
from tests.alerts.scenario import AlertTiming, provoke_all, working_fleet
from tests.databases import fresh_database


def main() -> int:
    """Run the scenario and print the table."""
    if missing():
        print(f"not installed: {missing()}", file=sys.stderr)
        return 1
    logging.disable(logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="alerts-", ignore_cleanup_errors=True) as scratch:
        home = Path(scratch) / "scenario"
        home.mkdir()
        with (
            embedded_servers(Path(scratch) / "servers") as servers,
            fresh_database(servers.postgres_url) as url,
        ):
            show(asyncio.run(_run(home, url)))
    return 0


async def _run(home: Path, url: str) -> list[AlertTiming]:
    async with working_fleet(home, url) as scenario:
        return await provoke_all(scenario)


def show(timings: list[AlertTiming]) -> None:
    table = Table("alert", "caused by", "receiver", "fired after", "resolved after")
    for each in timings:
        fired, resolved = f"{each.fired:.1f} s", f"{each.resolved:.1f} s"
        table.add_row(each.alert, each.caused_by, each.receiver, fired, resolved)
    Console().print(table)


if __name__ == "__main__":
    sys.exit(main())
