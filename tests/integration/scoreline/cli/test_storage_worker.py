"""`scoreline storage-worker`: its document and its port."""

import json
import socket
from asyncio import create_subprocess_exec, wait_for
from asyncio.subprocess import PIPE

from tests.integration.scoreline.cli.commands import Urls
from tests.integration.worker import SCORELINE, environment, scoreline


def test_asyncapi_document_is_printed_without_servers() -> None:
    """The document is generated from the code alone."""
    document = json.loads(scoreline("storage-worker", "asyncapi").stdout)
    assert len(document["channels"]) == 4


async def test_health_port_in_use_is_an_error(migrated: Urls) -> None:
    """A worker that cannot serve its health endpoint exits by itself, and names the port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        command = [SCORELINE, "storage-worker", "start", "--no-restart", "--health-port", port]
        process = await create_subprocess_exec(*command, stderr=PIPE, env=environment(**migrated))
        try:
            _, message = await wait_for(process.communicate(), 120)
        finally:
            if process.returncode is None:
                process.kill()
    assert port in message.decode()
    assert process.returncode == 1
