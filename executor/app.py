"""The executor's process: connections, signals, self-test."""

import asyncio
import gc
import logging
import time
from random import SystemRandom

from eventlog.event_queue import EventQueue
from eventlog.redis_streams import RedisEventLog, connect
from eventlog.signals import on_stop_signal
from executor.batch_runtime import Factories
from executor.contract import ExecutionEnvironment
from executor.executor import Executor, Ports, new_instance_id
from executor.lanes.assignment import lane_use
from executor.lanes.memory import MemoryLanes
from executor.lanes.redis_lanes import RedisLanes
from executor.registry import make_evaluator, make_target
from executor.sandbox.memory_cgroup import delegated_cgroup
from executor.sandbox.probe import probe
from executor.sandbox.run_directories import remove_abandoned
from executor.settings import ExecutorSettings, RedisSettings
from taskqueue.backends import Backend, open_queues
from taskqueue.budget.redis_budgets import RedisBudgets

logger = logging.getLogger(__name__)

REGISTERED_TYPES = Factories(make_target, make_evaluator, lane_use)
"""Every type that is built in or installed as a plugin."""
MAX_CONNECTIONS = 32


async def run_executor(
    connection: RedisSettings,
    settings: ExecutorSettings,
    *,
    environment: ExecutionEnvironment,
    factories: Factories = REGISTERED_TYPES,
) -> None:
    """Run an executor until it is stopped."""
    await _remove_abandoned_directories()
    self_test = asyncio.create_task(_log_self_test(environment))
    redis = connect(connection.redis_url, max_connections=MAX_CONNECTIONS)
    queues, random = open_queues(Backend.REDIS, redis), SystemRandom()
    instance_id = new_instance_id(settings.name, random)
    log = RedisEventLog(redis, shards=connection.shards)
    try:
        async with EventQueue(log, source=instance_id) as events:
            executor = Executor(
                Ports(
                    events,
                    queues.tasks,
                    queues.batch_registry,
                    queues.executor_registry,
                    lanes=MemoryLanes(time.time) if settings.keeps_lanes_alone else RedisLanes(redis),
                    budgets=RedisBudgets(redis),
                    jitter=random.random,
                ),
                settings,
                factories,
                instance_id=instance_id,
                environment=environment,
            )
            on_stop_signal(executor.stop, exits_at_second=True)
            await executor.run()
    finally:
        await asyncio.wait([self_test])
        await redis.aclose()


async def _log_self_test(environment: ExecutionEnvironment) -> None:
    """Test the sandbox once and log the result; where it fails, work that needs one is refused."""
    result = await asyncio.to_thread(probe)
    cgroup = delegated_cgroup(environment.cgroup)
    reason = result.failure or (await asyncio.to_thread(lambda: cgroup.failure) if cgroup else "")
    if result.privilege_mode and not reason:
        enforced = {check.name: check.enforced_by for check in result.checks}
        mode = result.privilege_mode.value
        extra = {"privilege_mode": mode, "isolation": enforced, "cgroup": environment.cgroup}
        logger.info("sandbox self-test passed", extra=extra)
        return
    runs_without = environment.allow_unsandboxed and result.privilege_mode is None
    refused = "runs without a sandbox" if runs_without else "is refused"
    logger.warning(
        "sandbox self-test failed: work of command targets and code evaluators %s",
        refused,
        extra={"reason": reason, "command": "scoreline sandbox check"},
    )


async def _remove_abandoned_directories() -> None:
    if removed := await asyncio.to_thread(remove_abandoned):
        logger.info("removed run directories of killed executors", extra={"directories": removed})


def collect_garbage_rarely() -> None:
    """Run the cyclic collector rarely: evaluations create many short-lived objects and few cycles."""
    gc.freeze()
    gc.set_threshold(100_000, 50, 50)
