"""A batch whose tables are audited."""

from collections.abc import AsyncIterator

import pytest

from tests.builders import history
from tests.integration.scoreline.reports.audit.audited import LIFE, is_stored
from tests.integration.worker import Site, site, worker
from tests.waiting import until


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    """A batch with evaluations that completed, failed, were retried, bridged, or wait beyond a gap."""
    async with site(redis_url, postgres_url) as made:
        async with worker(made):
            for number in range(4):
                await made.append(history(LIFE, evaluation_id=f"done-{number}"))
            await made.append(history("queued provisioning running failed", evaluation_id="failed"))
            await made.append(history("queued provisioning running retrying", evaluation_id="retried"))
            await made.append(history("queued:retry " + LIFE[7:], evaluation_id="retried", attempt=2))
            bridged = history(LIFE, evaluation_id="bridged")
            await made.append([*bridged[:2], *bridged[3:]])
            open_gap = history("queued provisioning running responded", evaluation_id="open-gap")
            await made.append([open_gap[0], open_gap[3]])
            await made.append(history("queued provisioning", evaluation_id="working"))
            await until(lambda: is_stored(made))
        yield made
