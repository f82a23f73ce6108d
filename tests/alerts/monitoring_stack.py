"""A real Prometheus and a real Alertmanager on loopback, with shortened periods, and a recording receiver.

Rules, routes and inhibitions are the shipped ones. Only periods are divided, and the receivers are replaced
by a web hook that records what it is sent.
"""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any

import httpx2
import yaml

from scoreline.local.alert_rules import RULES
from scoreline.observability.alerts.rules import rules
from scoreline.observability.thresholds import Thresholds
from tests.alerts.processes import Process, free_port
from tests.waiting import until

SPEEDUP = 60
"""A minute is a second."""
PROGRAMS = ("prometheus", "prometheus-alertmanager")
SECOND = "1s"


@dataclass(frozen=True, slots=True)
class Notification:
    """One alert in one message."""

    at: float
    receiver: str
    alert: str
    status: str
    labels: dict[str, str]


@dataclass(slots=True)
class Receiver:
    """Records the messages of Alertmanager."""

    notifications: list[Notification] = field(default_factory=list)
    url: str = ""

    def find(self, alert: str, status: str, receiver: str, *, since: float = 0.0) -> Notification | None:
        """Return the first notification of this kind after a moment."""
        wanted = (alert, status, receiver)
        return next(
            (
                each
                for each in self.notifications
                if (each.alert, each.status, each.receiver) == wanted and each.at >= since
            ),
            None,
        )

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request per connection, so that no connection is left open."""
        path = (await reader.readline()).split()[1].decode()
        length = 0
        while (header := await reader.readline()) != b"\r\n":
            name, _, value = header.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        self._record(path.strip("/"), json.loads(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    def _record(self, receiver: str, message: dict[str, Any]) -> None:
        for each in message["alerts"]:
            labels, now = each["labels"], monotonic()
            alert = labels["alertname"]
            self.notifications.append(Notification(now, receiver, alert, each["status"], labels))


@dataclass(frozen=True, slots=True)
class MonitoringStack:
    """Prometheus, Alertmanager and the receiver."""

    receiver: Receiver
    prometheus: str
    client: httpx2.AsyncClient

    async def value(self, query: str) -> float | None:
        """Return the value of a query with one series; None without any."""
        reply = await self.client.get(f"{self.prometheus}/api/v1/query", params={"query": query})
        series = reply.json()["data"]["result"]
        return float(series[0]["value"][1]) if series else None


def missing() -> str:
    """List the programs that are not installed."""
    return ", ".join(name for name in PROGRAMS if not shutil.which(name))


@asynccontextmanager
async def monitoring_stack(home: Path, metrics: Path) -> AsyncIterator[MonitoringStack]:
    """Monitor all processes that register their address in a folder."""
    receiver, ports = Receiver(), (free_port(), free_port())
    async with AsyncExitStack() as stack:
        server = await asyncio.start_server(receiver.serve, "127.0.0.1", 0)
        await stack.enter_async_context(server)
        receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for argv in (_prometheus(home, metrics, ports), _alertmanager(home, receiver.url, ports[1])):
            process = Process(argv, home / f"{argv[0]}.log", {})
            stack.callback(process.kill)
            process.start()
        client = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=10))
        for port in ports:
            await until(partial(_is_ready, client, port), 60)
        yield MonitoringStack(receiver, f"http://127.0.0.1:{ports[0]}", client)


async def _is_ready(client: httpx2.AsyncClient, port: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{port}/-/ready")).status_code == 200
    except httpx2.TransportError:
        return False


def _prometheus(home: Path, metrics: Path, ports: tuple[int, int]) -> list[str]:
    thresholds = Thresholds().accelerated(SPEEDUP, scrape_timeout=timedelta(seconds=1))
    (home / "rules.yml").write_text(rules(thresholds, speedup=SPEEDUP), encoding="utf-8")
    config = {
        "global": {"scrape_interval": SECOND, "scrape_timeout": SECOND, "evaluation_interval": SECOND},
        "rule_files": [str(home / "rules.yml")],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{ports[1]}"]}]}]},
        "scrape_configs": [
            {
                "job_name": "scoreline",
                "file_sd_configs": [{"files": [f"{metrics}/*.json"], "refresh_interval": SECOND}],
            }
        ],
    }
    file = home / "prometheus.yml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    return [
        "prometheus",
        f"--config.file={file}",
        f"--storage.tsdb.path={home / 'prometheus'}",
        f"--web.listen-address=127.0.0.1:{ports[0]}",
        f"--scrape.discovery-reload-interval={SECOND}",
    ]


def _alertmanager(home: Path, url: str, port: int) -> list[str]:
    config = yaml.safe_load(RULES.with_name("alertmanager.yml").read_text(encoding="utf-8"))
    config["route"] |= {"group_wait": "0s", "group_interval": SECOND}
    for receiver in config["receivers"]:
        if len(receiver) > 1:
            name = receiver["name"]
            receiver.clear()
            receiver.update(name=name, webhook_configs=[{"url": f"{url}/{name}"}])
    file = home / "alertmanager.yml"
    file.write_text(yaml.safe_dump(config), encoding="utf-8")
    options = [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    return ["prometheus-alertmanager", f"--config.file={file}", f"--storage.path={home / 'am'}", *options]
