"""A coordinator for tests that kill it: the real one, in a hurry, with small provider batches."""

import asyncio
import os
from datetime import timedelta

from coordinator import app
from coordinator.provider_batches.settings import ProviderBatchSettings
from coordinator.settings import CoordinatorSettings

SOON = timedelta(milliseconds=20)
SETTINGS = CoordinatorSettings(
    cycle_interval=SOON,
    provider=ProviderBatchSettings(
        max_requests=30,
        page=5,
        first_poll=SOON,
        longest_poll=timedelta(milliseconds=100),
        submit_timeout=timedelta(seconds=1),
        margin=timedelta(0),
        interval=SOON,
    ),
)


def coordinate(site: app.CoordinatorConfig, environ: dict[str, str]) -> None:
    """Be a coordinator until killed."""
    os.environ.update(environ)
    vars(app)["STANDBY"] = SOON.total_seconds()
    asyncio.run(app.run(site, SETTINGS))
