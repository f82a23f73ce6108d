"""`scoreline storage-worker`: its document and its port."""

import json
import socket
from asyncio import create_subprocess_exec
from asyncio.subprocess import PIPE
from contextlib import closing

from redis import Redis

from tests.integration.scoreline.cli.commands import Urls
from tests.integration.worker import SCORELINE, WAKE_STREAMS, environment, scoreline
from tests.waiting import until


def test_asyncapi_document_is_printed_without_servers() -> None:
    """The document is generated from the code alone."""
    document = json.loads(scoreline("storage-worker", "asyncapi").stdout)
    assert len(document["channels"]) == 4


async def test_health_port_in_use_is_an_error(migrated: Urls) -> None:
    """A worker that cannot serve its health endpoint does not start."""
    with socket.socket() as taken, closing(Redis.from_url(migrated["EVAL_REDIS_URL"])) as redis:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [SCORELINE, "storage-worker", "start", "--no-restart", "--health-port", port]
        process = await create_subprocess_exec(*command, stderr=PIPE, env=environment(**migrated))
        await until(lambda: process.returncode is not None or redis.exists(*WAKE_STREAMS) == 4, 60)
        process.terminate()
        _, message = await process.communicate()
    assert port in message.decode()
