"""`scoreline observe` from end to end."""

import asyncio
import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex

from psycopg import AsyncConnection
from rich.console import Console
from rich.text import Text

from eventlog.clock import utc_now
from eventlog.signals import stop_event
from grafana.catalogue import DASHBOARDS
from grafana.expansion import Window
from providers.extras import install_command
from scoreline.command_error import CommandError
from scoreline.local.observe.panel_queries import PanelReader, PanelResult
from scoreline.local.observe.prometheus import MISSING, Prometheus, prometheus
from scoreline.local.observe.view import document, problems, show
from scoreline.local.observe.workload import PROCESSES, QUICK, TooSlow, Workload, running_fleet
from scoreline.local.servers import ready_servers
from scoreline.observability.wiring import check_installed
from scoreline.private_files import default_root
from scoreline.reports.screen import screen
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings, load_settings

LOOKING = 30.0
"""Seconds in which every panel must have come to show something."""
STARTING = 60.0
"""Seconds in which the fleet must have been found."""
_ONE_LIFE = (
    "SELECT v.evaluation_id FROM evaluations v JOIN scorecards s USING (evaluation_id)"
    " WHERE v.batch_id = %s AND s.status = 'completed' ORDER BY v.attempt DESC, v.evaluation_id LIMIT 1"
)

Found = dict[str, list[PanelResult]]


def run_observe(*, as_json: bool, keep: bool) -> int:
    """Run the work, look at every panel, and return the exit code."""
    _check()
    console = Console(stderr=True, highlight=False, markup=False) if as_json else screen()
    settings = load_settings().model_copy(update=QUICK)
    folder = tempfile.TemporaryDirectory(prefix="observe-")
    with ready_servers(settings, service="coordinator") as servers, folder as root:
        return asyncio.run(
            _Observing(servers, settings, console).run(Path(root), as_json=as_json, keep=keep)
        )


def _check() -> None:
    """See that all is there before anything is started."""
    if shutil.which("prometheus") is None:
        raise CommandError(MISSING)
    check_installed()
    if find_spec("anthropic") is None:
        raise CommandError(f"the workload calls a provider's SDK: {install_command('otel', 'providers')}")


class _Observing:
    def __init__(self, servers: Servers, settings: Settings, console: Console) -> None:
        self.servers, self.settings, self.console = servers, settings, console
        self.began, self.clock = utc_now(), time.monotonic()

    async def run(self, root: Path, *, as_json: bool, keep: bool) -> int:
        found = await self._observed(root, keep=keep and not as_json)
        if as_json:
            print(json.dumps(document(found, seconds=self._seconds())), flush=True)  # noqa: T201 - for machines
        return int(bool(problems(found)))

    async def _observed(self, root: Path, *, keep: bool) -> Found:
        metrics = root / "metrics"
        metrics.mkdir()
        log_path = (self.settings.data_dir or default_root()) / "observe.log"
        run_id = token_hex(8)  # so that no other fleet on the same servers serves its batches
        async with (
            prometheus(root, metrics=metrics) as server,
            running_fleet(
                self.servers, self.settings, run_id=run_id, metrics=metrics, log_path=log_path
            ) as provider,
        ):
            work = Workload(self.servers, self.settings, provider, self.console, self._print, run_id)
            try:
                await self._seen(server, log_path)
                await self._done(work, log_path)
                found = await self._looked(server, work)
                self._report(found)
                if keep:
                    await self._kept(server)
            finally:
                await work.cancel()
        return found

    async def _seen(self, server: Prometheus, log_path: Path) -> None:
        """Wait until Prometheus has found the fleet: what was counted before would be no increase."""
        deadline = time.monotonic() + STARTING
        while len(await server.at("up == 1", utc_now())) < PROCESSES:
            if time.monotonic() > deadline:
                raise CommandError(f"Prometheus found no metrics of the fleet; its log is {log_path}")
            await asyncio.sleep(0.5)
        self._print(f"Prometheus has found {PROCESSES} processes")

    async def _done(self, work: Workload, log_path: Path) -> None:
        try:
            await work.do()
        except TooSlow as error:
            raise CommandError(f"{error}; the fleet's log is {log_path}") from error

    async def _looked(self, server: Prometheus, work: Workload) -> Found:
        """Poll until every panel and alert has data, or the time is up."""
        deadline = time.monotonic() + LOOKING
        async with await AsyncConnection.connect(self.servers.postgres_url, autocommit=True) as conn:
            values = await _values(conn, work.lanes)
            while True:
                found = await look(server, conn, values, since=self.began)
                if not problems(found) or time.monotonic() > deadline:
                    return found
                await asyncio.sleep(1)

    def _report(self, found: Found) -> None:
        show(self.console, DASHBOARDS, found)
        self.console.print()
        lacking = problems(found)
        for problem in lacking:
            self._print(f"✗ {problem}", "bold red")
        if not lacking:
            panels = sum(map(len, found.values()))
            many = f"{panels} panels of {len(found)} dashboards"
            self._print(
                f"✓ {many}: every required panel has data, in {self._seconds():.0f} s",
                "bold green",
            )

    async def _kept(self, server: Prometheus) -> None:
        self._print(
            f"Prometheus answers at {server.url} and the fleet keeps running; stop both with Ctrl-C"
        )
        await stop_event().wait()
        self._print("stopping: the running batch is cancelled")

    def _seconds(self) -> float:
        return time.monotonic() - self.clock

    def _print(self, words: str, style: str = "") -> None:
        self.console.print(Text(words, style=style), soft_wrap=True)


async def _values(conn: AsyncConnection, batch_id: str) -> dict[str, str]:
    """Return values of the dashboard variables: a batch, and one of its evaluations."""
    found = await (await conn.execute(_ONE_LIFE, [batch_id])).fetchone()
    return {"batch": batch_id, "evaluation": found[0] if found else ""}


async def look(
    server: Prometheus, conn: AsyncConnection, values: Mapping[str, str], *, since: datetime
) -> Found:
    """Ask for every panel of every dashboard, as of now."""
    until = utc_now()
    window = Window(since, until, timedelta(seconds=1), timedelta(seconds=10))
    reader = PanelReader(server, conn, window)
    found = {}
    for page in DASHBOARDS:
        # Where several batches can be chosen at once, all of them are.
        several = {each.name: ".*" for each in page.variables if each.many}
        found[page.title] = await reader.dashboard(page, {**values, **several})
    return found
