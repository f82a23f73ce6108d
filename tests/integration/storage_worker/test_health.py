"""The health of a storage worker."""

from typing import Any
from urllib.parse import urlsplit

from psycopg import AsyncConnection

from scoreline.servers.addresses import Servers
from tests.integration.storage_worker.wake_up_steps import completed, life
from tests.integration.worker import (
    Site,
    admit,
    ask,
    free_port,
    worker,
)
from tests.waiting import until


async def test_health_reports_counts_and_the_server_it_waits_for(
    here: Site, servers: Servers, postgres_url: str
) -> None:
    """The status is 200 with counts, 503 with the reason while Postgres is unavailable, then 200 again."""
    port = free_port()
    async with worker(here, health_port=port):
        await here.append(life("before"))
        await until(lambda: completed(here, "before"))
        status, health = await ask(port, "/health") or (0, {})
        assert (status, health["status"], health["events"]) == (200, "ok", {"applied": 6})
        async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as admin:
            name = urlsplit(postgres_url).path[1:]
            await admit(admin, name, allowed=False)
            await here.append(life("meanwhile"))
            _, health = await until(lambda: answer(port, 503))
            assert health["waiting_for"]
            await admit(admin, name, allowed=True)
        _, health = await until(lambda: answer(port, 200), 60)
        assert health["events"] == {"applied": 12}
        assert (await ask(port, "/elsewhere") or (0, {}))[0] == 404


async def answer(port: int, status: int) -> tuple[int, dict[str, Any]] | None:
    health = await ask(port, "/health")
    return health if health and health[0] == status else None
