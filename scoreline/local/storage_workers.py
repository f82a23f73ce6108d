"""Storage workers as processes: one here, or several under the process manager."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import IO

from eventlog.signals import stop_event
from scoreline.command_error import CommandError
from scoreline.local.processes import process_manager, service_argv
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from storage_worker.settings import StorageSettings


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """What to start."""

    name: str
    workers: int = 1
    batch_size: int = 2_000
    health_port: int | None = None


def storage_settings(plan: WorkerPlan, settings: Settings, servers: Servers) -> StorageSettings:
    """Build the settings of a storage worker."""
    return StorageSettings(
        redis_url=servers.redis_url,
        postgres_url=servers.postgres_url,
        consumer=plan.name,
        shards=settings.shards,
        ordering=settings.ordering,
        gap_timeout=timedelta(seconds=settings.gap_timeout),
        gap_warning=timedelta(seconds=settings.gap_warning),
        batch_size=plan.batch_size,
        health_port=plan.health_port,
    )


def worker_environ(settings: Settings, servers: Servers, *, alone: bool = False) -> dict[str, str]:
    """Build the environment of a child; unlike arguments, no process list shows it.

    Only a child that is alone can have the port that was named: of several, each needs its own.
    """
    return {
        **os.environ,
        "EVAL_REDIS_URL": servers.redis_url,
        "EVAL_POSTGRES_URL": servers.postgres_url,
        "EVAL_SHARDS": str(settings.shards),
        "EVAL_ORDERING": settings.ordering.value,
        "EVAL_GAP_TIMEOUT": str(settings.gap_timeout),
        "EVAL_GAP_WARNING": str(settings.gap_warning),
        "EVAL_QUEUE_BACKEND": settings.queue_backend,
        "EVAL_WORKER_HEARTBEAT_INTERVAL": str(settings.worker_heartbeat_interval),
        "EVAL_WORKER_DRAIN": str(settings.worker_drain),
        "EVAL_WORKER_ALLOW_UNSANDBOXED": str(settings.worker_allow_unsandboxed).lower(),
        "EVAL_RATE_LIMIT_MODE": settings.rate_limit_mode.value,
        "EVAL_RATE_LIMIT_BREAKER_FAILURES": str(settings.rate_limit_breaker_failures),
        "EVAL_RATE_LIMIT_BREAKER_SECONDS": str(settings.rate_limit_breaker_seconds),
        "EVAL_LOG_LEVEL": settings.log_level,
        **_telemetry(settings, alone=alone),
    }


def _telemetry(settings: Settings, *, alone: bool) -> dict[str, str]:
    port = settings.metrics_port if alone or settings.metrics_port is None else 0
    values = {
        "EVAL_METRICS_PORT": port,
        "EVAL_METRICS_HOST": settings.metrics_host,
        "EVAL_METRICS_DIR": settings.metrics_dir,
        "EVAL_TRACE_DIR": settings.trace_dir,
        "EVAL_TRACE_RATIO": settings.trace_ratio,
    }
    return {name: str(value) for name, value in values.items() if value is not None}


def worker_argv(plan: WorkerPlan, number: int) -> list[str]:
    """Spell the command of one worker out."""
    argv = service_argv("storage-worker", "start", "--no-restart", "--follow-stdin")
    argv += ["--name", f"{plan.name}-{number}", "--batch-size", str(plan.batch_size)]
    if plan.health_port is not None:
        argv += ["--health-port", str(plan.health_port + number)]
    return argv


def run_here(
    plan: WorkerPlan, settings: Settings, servers: Servers, *, report_ready: Callable[[], None]
) -> None:
    """Run a storage worker until a stop signal."""
    import uvloop

    from scoreline.observability.wiring import Service, telemetry_for
    from storage_worker.app import LoopError, build_app, collect_garbage_rarely

    with telemetry_for(Service.STORAGE_WORKER, settings, name=plan.name):
        collect_garbage_rarely()
        report_ready()
        try:
            uvloop.run(build_app(storage_settings(plan, settings, servers)).run())
        except* LoopError as failures:
            raise CommandError(str(failures.exceptions[0])) from failures


def run_managed(
    plan: WorkerPlan, settings: Settings, servers: Servers, *, log_to: IO[bytes] | int = 2
) -> None:
    """Supervise storage workers until a stop signal."""
    asyncio.run(_manage(plan, settings, servers, log_to))


async def _manage(plan: WorkerPlan, settings: Settings, servers: Servers, log_to: IO[bytes] | int) -> None:
    stop = stop_event()
    environ = worker_environ(settings, servers, alone=plan.workers == 1)
    async with process_manager(environ, log_to=log_to) as manager:
        for number in range(plan.workers):
            manager.keep(f"storage-worker-{number}", worker_argv(plan, number))
        await stop.wait()
