"""A temporary Prometheus: on loopback, with its data in a temporary directory."""

import asyncio
import os
import shutil
import socket
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2
import yaml

import grafana
from scoreline.command_error import CommandError
from scoreline.local.processes import process_manager
from scoreline.private_files import open_private

RULES = Path(grafana.__file__).parent / "prometheus" / "rules.yml"
SCRAPE_EVERY = 1
"""Seconds: a run is short."""
STARTING = 30.0
MISSING = (
    "prometheus is not installed: it evaluates the queries of the dashboards. On Debian and Ubuntu: "
    "apt install prometheus (it need not run as a service); else from prometheus.io, somewhere on PATH."
)

Series = Mapping[str, Any]
"""One of Prometheus' answers: `metric` with its labels, and `value` or `values`."""


class Refused(Exception):  # noqa: N818 - the text is Prometheus'
    """Prometheus did not take a query."""


@dataclass(frozen=True, slots=True)
class Prometheus:
    """One that answers."""

    url: str
    client: httpx2.AsyncClient

    async def at(self, expr: str, moment: datetime) -> list[Series]:
        """Ask for one moment."""
        return await self._ask("query", query=expr, time=str(moment.timestamp()))

    async def over(self, expr: str, since: datetime, until: datetime, *, step: float) -> list[Series]:
        """Ask for a stretch of time."""
        stretch = {"start": str(since.timestamp()), "end": str(until.timestamp()), "step": str(step)}
        return await self._ask("query_range", query=expr, **stretch)

    async def values(self, metric: str, label: str) -> list[str]:
        """List what a label of a metric can be."""
        return [str(each) for each in await self._data(f"label/{label}/values", {"match[]": metric})]

    async def metrics(self) -> set[str]:
        """List all there is a sample of."""
        return {str(each) for each in await self._data("label/__name__/values", {})}

    async def _ask(self, path: str, **asked: str) -> list[Series]:
        found = (await self._data(path, asked))["result"]
        return list(found)

    async def _data(self, path: str, asked: Mapping[str, str]) -> Any:  # noqa: ANN401 - as each path has it
        reply = await self.client.get(f"{self.url}/api/v1/{path}", params=dict(asked))
        answer = reply.json()
        if answer["status"] != "success":
            raise Refused(answer["error"])
        return answer["data"]


@asynccontextmanager
async def prometheus(root: Path, *, metrics: Path) -> AsyncIterator[Prometheus]:
    """Run one that asks all processes which have left word in the folder `metrics`."""
    program = shutil.which("prometheus")
    if program is None:
        raise CommandError(MISSING)
    port, log_path = _free_port(), root / "prometheus.log"
    config = root / "prometheus.yml"
    config.write_text(yaml.safe_dump(_config(metrics)), encoding="utf-8")
    argv = [
        *(sys.executable, "-P", "-m", "scoreline.local.observe.guarded"),
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={root / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=warn",
    ]
    url = f"http://127.0.0.1:{port}"
    with open_private(log_path) as log:
        async with (
            process_manager(os.environ, log_to=log) as manager,
            httpx2.AsyncClient(trust_env=False, timeout=30) as client,
        ):
            child = manager.keep("prometheus", argv)
            await _ready(
                client,
                url,
                has_ended=lambda: bool(child.exits),
                words=lambda: log_path.read_text(errors="replace")[-1000:],
            )
            yield Prometheus(url, client)


def _config(metrics: Path) -> dict[str, object]:
    return {
        "global": {"scrape_interval": f"{SCRAPE_EVERY}s", "evaluation_interval": f"{SCRAPE_EVERY}s"},
        "rule_files": [str(RULES)] if RULES.exists() else [],
        "scrape_configs": [
            {
                "job_name": "scoreline",
                "file_sd_configs": [{"files": [f"{metrics}/*.json"], "refresh_interval": "1s"}],
            }
        ],
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def _ready(
    client: httpx2.AsyncClient, url: str, *, has_ended: Callable[[], bool], words: Callable[[], str]
) -> None:
    deadline = asyncio.get_running_loop().time() + STARTING
    while True:
        try:
            if (await client.get(f"{url}/-/ready")).status_code == httpx2.codes.OK:
                return
        except httpx2.HTTPError:
            pass
        if has_ended() or asyncio.get_running_loop().time() > deadline:
            raise CommandError(f"prometheus did not start: {words()}")
        await asyncio.sleep(0.1)
