"""An executor whose telemetry is read."""

from domain.batch_spec import TargetSpec
from taskqueue.queue_layout import queue_name
from tests.builders import BATCH
from tests.unit.executor.harness import (
    Harness,
)

METERED = TargetSpec("fake", "model", is_metered=True)


async def is_done(harness: Harness) -> bool:
    [counts] = await harness.tasks.counts([queue_name(BATCH, "target-0")])
    return counts.is_drained and bool(harness.target.asked)
