"""The health endpoint, for supervisors and operators: status, outage, backlog and counters as JSON."""

import asyncio
import json
import logging
from typing import Any

from faststream import FastStream
from redis.exceptions import RedisError

from storage_worker.consumer import Consumer
from storage_worker.settings import StorageSettings
from storage_worker.storage import Storage

logger = logging.getLogger(__name__)

REASONS = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}


async def serve_health(
    storage: Storage, consumer: Consumer, app: FastStream, settings: StorageSettings
) -> None:
    """Serve `/health` and `/asyncapi.json` on loopback until cancelled."""
    if settings.health_port is None:
        return

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await asyncio.wait_for(reader.readline(), timeout=5)
            path = [*request.split(), b"", b""][1].decode(errors="replace")
            status, body = await _respond(path, storage, consumer, app)
            writer.write(_http(status, body))
            await writer.drain()
        except (TimeoutError, ConnectionError) as error:
            logger.debug("health request dropped", extra={"error": str(error)})
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", settings.health_port)
    async with server:
        await server.serve_forever()


async def _respond(
    path: str, storage: Storage, consumer: Consumer, app: FastStream
) -> tuple[int, dict[str, Any]]:
    match path:
        case "/health":
            return await _health(storage, consumer)
        case "/asyncapi.json":
            return 200, json.loads(app.schema.to_specification().to_json())
        case _:
            return 404, {"error": "try /health or /asyncapi.json"}


async def _health(storage: Storage, consumer: Consumer) -> tuple[int, dict[str, Any]]:
    try:
        lag = await consumer.lag()
        outage = storage.outage
    except (RedisError, OSError) as error:
        lag, outage = {}, str(error)
    body = {
        "status": "ok" if outage is None else "waiting",
        "waiting_for": outage,
        "in_a_hurry": storage.is_degraded,
        "wake_ups": lag,
        **storage.counts.as_dict(),
    }
    return (200 if outage is None else 503), body


def _http(status: int, body: dict[str, Any]) -> bytes:
    text = json.dumps(body).encode()
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + text
