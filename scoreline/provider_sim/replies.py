"""Answers on their way out, and what can happen to them there."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from scoreline.provider_sim.http_messages import ConnectionAborted, HttpReply, compact

_HTML = b"<!DOCTYPE html><html><head><title>Just a moment...</title></head><body></body></html>"


def whole_reply(body: object, headers: Mapping[str, str], *, fault: str | None) -> HttpReply:
    """Send an answer at once, or what the fault leaves of it."""
    in_json, data = {"content-type": "application/json", **headers}, compact(body)
    match fault:
        case None:
            return HttpReply(200, in_json, data)
        case "html":
            return HttpReply(200, {"content-type": "text/html; charset=utf-8", **headers}, _HTML)
        case "truncated":
            return HttpReply(200, in_json, data[: len(data) // 2])
        case "reset_midway":
            return HttpReply(200, in_json, _broken(data[: len(data) // 2]), length=len(data))
        case _:
            raise ValueError(fault)


def streamed_reply(
    events: Sequence[bytes],
    headers: Mapping[str, str],
    *,
    fault: str | None,
    error: bytes,
    seconds: float,
) -> HttpReply:
    """Send an answer event by event, or half of it and then what the fault is."""
    as_events = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache", **headers}
    pause = seconds / len(events)
    half = events[: (len(events) + 1) // 2]
    match fault:
        case None:
            return HttpReply(200, as_events, _paced(events, pause))
        case "stream_error":
            return HttpReply(200, as_events, _paced([*half, error], pause))
        case "stream_broken":
            return HttpReply(200, as_events, _paced(half, pause, end=ConnectionAborted(fault, reset=False)))
        case "reset_midway":
            return HttpReply(200, as_events, _paced(half, pause, end=ConnectionAborted(fault)))
        case _:
            raise ValueError(fault)


async def _broken(data: bytes) -> AsyncIterator[bytes]:
    yield data
    raise ConnectionAborted("reset_midway")


async def _paced(
    events: Sequence[bytes], pause: float, *, end: ConnectionAborted | None = None
) -> AsyncIterator[bytes]:
    """Send events with a pause between them; without one they go out together."""
    if pause <= 0:
        yield b"".join(events)
    else:
        for event in events:
            yield event
            await asyncio.sleep(pause)
    if end is not None:
        raise end
