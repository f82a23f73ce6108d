"""A real Prometheus and a real Alertmanager on loopback, in a hurry, and somebody who is told.

Rules, routes and what keeps what quiet are those that are shipped. Only spans of time are shorter, and the
receivers are replaced by one that takes notes.
"""

import asyncio
import json
import shutil
import socket
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

from grafana.alerts import RULES, rules
from scoreline.observability.thresholds import Thresholds
from tests.alerts.processes import Process
from tests.waiting import until

HURRY = 60
"""A minute is a second."""
PROGRAMS = ("prometheus", "prometheus-alertmanager")
SECOND = "1s"


@dataclass(frozen=True, slots=True)
class Told:
    """One alert in one message."""

    at: float
    receiver: str
    alert: str
    status: str
    labels: dict[str, str]


@dataclass(slots=True)
class Receiver:
    """Takes Alertmanager's messages."""

    notes: list[Told] = field(default_factory=list)
    url: str = ""

    def found(self, alert: str, status: str, receiver: str, *, since: float = 0.0) -> Told | None:
        """The first message of this kind after a moment."""
        return next(
            (
                note
                for note in self.notes
                if (note.alert, note.status, note.receiver) == (alert, status, receiver)
                and note.at >= since
            ),
            None,
        )

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request a connection, so that none is left over."""
        path = (await reader.readline()).split()[1].decode()
        length = 0
        while (header := await reader.readline()) != b"\r\n":
            name, _, value = header.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        self._note(path.strip("/"), json.loads(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    def _note(self, receiver: str, message: dict[str, Any]) -> None:
        for each in message["alerts"]:
            labels = each["labels"]
            self.notes.append(Told(monotonic(), receiver, labels["alertname"], each["status"], labels))


@dataclass(frozen=True, slots=True)
class Watchers:
    """Both, at work."""

    receiver: Receiver
    prometheus: str
    client: httpx2.AsyncClient

    async def ask(self, query: str) -> list[dict[str, Any]]:
        """Ask Prometheus."""
        reply = await self.client.get(f"{self.prometheus}/api/v1/query", params={"query": query})
        return list(reply.json()["data"]["result"])

    async def fires(self, alert: str) -> bool:
        """Whether an alert is firing now."""
        return bool(await self.ask(f'ALERTS{{alertname="{alert}",alertstate="firing"}}'))


def missing() -> str:
    """Say which program is not installed here."""
    return ", ".join(name for name in PROGRAMS if not shutil.which(name))


def free_port() -> int:
    """Find one that nobody has."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@asynccontextmanager
async def watchers(home: Path, metrics: Path) -> AsyncIterator[Watchers]:
    """Watch all processes that leave word in a folder."""
    receiver, ports = Receiver(), (free_port(), free_port())
    async with AsyncExitStack() as stack:
        server = await asyncio.start_server(receiver.take, "127.0.0.1", 0)
        await stack.enter_async_context(server)
        receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for argv in (_prometheus(home, metrics, ports), _alertmanager(home, receiver.url, ports[1])):
            process = Process(argv, home / f"{argv[0]}.log", {})
            stack.callback(process.kill)
            process.start()
        client = await stack.enter_async_context(httpx2.AsyncClient(trust_env=False, timeout=10))
        for port in ports:
            await until(partial(_is_ready, client, port), 60)
        yield Watchers(receiver, f"http://127.0.0.1:{ports[0]}", client)


async def _is_ready(client: httpx2.AsyncClient, port: int) -> bool:
    try:
        return (await client.get(f"http://127.0.0.1:{port}/-/ready")).status_code == 200
    except httpx2.TransportError:
        return False


def _prometheus(home: Path, metrics: Path, ports: tuple[int, int]) -> list[str]:
    limits = Thresholds().hurried(HURRY, scrape_timeout=timedelta(seconds=1))
    (home / "rules.yml").write_text(rules(limits, hurry=HURRY), encoding="utf-8")
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
    listen = f"--web.listen-address=127.0.0.1:{ports[0]}"
    return ["prometheus", f"--config.file={file}", f"--storage.tsdb.path={home / 'prometheus'}", listen]


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
    where = [f"--web.listen-address=127.0.0.1:{port}", "--cluster.listen-address="]
    return ["prometheus-alertmanager", f"--config.file={file}", f"--storage.path={home / 'am'}", *where]
