"""Anthropic's Message Batches: create, retrieve, list, cancel, delete and read the results."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime
from random import Random
from typing import IO, Any

from scoreline.provider_sim.anthropic_messages import AnthropicMessages, rfc3339
from scoreline.provider_sim.batch_requests import read_requests
from scoreline.provider_sim.batch_store import BatchSchedule, SimulatedBatch, course_of
from scoreline.provider_sim.calls import CallHandler
from scoreline.provider_sim.faults import uniform
from scoreline.provider_sim.http_messages import (
    ApiError,
    ConnectionAborted,
    HttpReply,
    HttpRequest,
    Json,
    compact,
    in_json,
    invalid,
)

LARGEST = 256 * 1024 * 1024
PATH = "/v1/messages/batches"
_PAGE = 20
_MOST_ON_A_PAGE = 1_000
_AT_A_TIME = 50
_OUTCOMES = ("processing", "succeeded", "errored", "canceled", "expired")


class MessageBatches:
    """All batches there are."""

    def __init__(self, calls: CallHandler) -> None:
        self._calls = calls
        self._batches: dict[str, SimulatedBatch] = {}
        self._messages = AnthropicMessages()

    def close(self) -> None:
        """Delete all batches."""
        for batch in self._batches.values():
            batch.close()
        self._batches.clear()

    def finish(self) -> int:
        """End all batches in progress now; returns their number."""
        now = self._calls.utc_now()
        going = [each for each in self._batches.values() if each.course.status(now) == "in_progress"]
        for batch in going:
            batch.course = replace(batch.course, due=now)
        return len(going)

    async def create(self, request: HttpRequest) -> HttpReply:
        """Create a batch, completely or not at all."""
        if request.too_large:
            raise ApiError(413, "request_too_large", "Request exceeds the maximum size")
        seed, name = self._calls.settings.answers.seed, f"msgbatch_{self._calls.name()}"
        course = course_of(self._calls.settings.batches, self._calls.utc_now())
        if uniform(seed, name, "server error") < course.fates.batch_server_error:
            self._calls.stats.faults["batch_server_error"] += 1
            raise ApiError(500, "api_error", "Internal server error")
        batch = SimulatedBatch(name, course, Random(f"{seed} {name[-9:]}"))  # noqa: S311 - dice, not secrets
        try:
            digests = await asyncio.to_thread(self._fill, batch, request.body)
        except BaseException:
            batch.close()
            raise
        self._batches[name] = batch
        self._calls.stats.created_batch(digests)
        if uniform(seed, name, "unheard") < course.fates.batch_unheard:
            self._calls.stats.faults["batch_unheard"] += 1
            raise ConnectionAborted("batch_unheard")
        return in_json(200, self._shown(batch, request))

    async def show_all(self, request: HttpRequest) -> HttpReply:
        """Show a page of batches, the newest first."""
        names, limit = list(reversed(self._batches)), _limit(request)
        after, before = request.query.get("after_id"), request.query.get("before_id")
        if before:
            newer = names[: _place(names, before, "before_id")]
            page, more = newer[-limit:], len(newer) > limit
        else:
            older = names[_place(names, after, "after_id") + 1 :] if after else names
            page, more = older[:limit], len(older) > limit
        ends = {"first_id": page[0] if page else None, "last_id": page[-1] if page else None}
        data = [self._shown(self._batches[name], request) for name in page]
        return in_json(200, {"data": data, "has_more": more, **ends})

    async def retrieve(self, request: HttpRequest, name: str) -> HttpReply:
        """Show a batch."""
        return in_json(200, self._shown(self._found(name), request))

    async def cancel(self, request: HttpRequest, name: str) -> HttpReply:
        """Cancel a batch; finished requests stay."""
        batch, now = self._found(name), self._calls.utc_now()
        match batch.course.status(now):
            case "ended":
                raise invalid(f"Batch {name} has ended and can't be canceled")
            case "in_progress":
                batch.course = replace(batch.course, canceled=now)
            case _:
                pass  # already requested
        return in_json(200, self._shown(batch, request))

    async def delete(self, _request: HttpRequest, name: str) -> HttpReply:
        """Delete a batch that has ended."""
        batch = self._found(name)
        if batch.course.status(self._calls.utc_now()) != "ended":
            raise invalid(f"Batch {name} can't be deleted before it has ended; cancel it first")
        self._batches.pop(name).close()
        return in_json(200, {"id": name, "type": "message_batch_deleted"})

    async def results(self, _request: HttpRequest, name: str) -> HttpReply:
        """Send the results, a line each, in no order worth relying on."""
        batch = self._found(name)
        if batch.course.status(self._calls.utc_now()) != "ended":
            raise ApiError(404, "not_found_error", f"Batch {name} has no results yet")
        return HttpReply(200, {"content-type": "application/x-jsonl"}, self._lines(batch))

    def _fill(self, batch: SimulatedBatch, body: IO[bytes]) -> list[int]:
        """Store the requests of the batch, and return their counts."""
        digests = list[int]()
        for item in read_requests(body):
            try:
                digests.append(self._calls.parse(item["params"], self._messages)[0].digest)
            except ApiError:
                batch.add(compact(item), sound=False)
            else:
                batch.add(compact(item), sound=True)
        return digests

    def _found(self, name: str) -> SimulatedBatch:
        if name not in self._batches:
            raise ApiError(404, "not_found_error", f"Message Batch {name} not found")
        return self._batches[name]

    def _shown(self, batch: SimulatedBatch, request: HttpRequest) -> dict[str, Any]:
        now, course = self._calls.utc_now(), batch.course
        has_ended, counts = course.status(now) == "ended", batch.counts(now)
        url = f"http://{request.headers.get('host', 'localhost')}{PATH}/{batch.id}/results"
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": course.status(now),
            "request_counts": {name: counts[name] for name in _OUTCOMES},
            "results_url": url if has_ended else None,
            **_times(course, has_ended=has_ended),
        }

    async def _lines(self, batch: SimulatedBatch) -> AsyncIterator[bytes]:
        lines = list[bytes]()
        try:
            for item, outcome in batch.results():
                result = {"custom_id": item["custom_id"], "result": self._result(item["params"], outcome)}
                lines.append(compact(result) + b"\n")
                if len(lines) == _AT_A_TIME:
                    yield b"".join(lines)
                    lines.clear()
                    await asyncio.sleep(0)
        except ValueError:
            raise ConnectionAborted("deleted") from None  # while it is being read
        if lines:
            yield b"".join(lines)

    def _result(self, params: Json, outcome: str) -> dict[str, Any]:
        if outcome in ("canceled", "expired"):
            return {"type": outcome}
        try:
            model_request, answered = self._calls.parse(params, self._messages)
            if outcome == "errored":
                raise self._messages.broken
        except ApiError as refused:
            error = {"type": refused.kind, "message": refused.message}
            return {"type": "errored", "error": {"type": "error", "error": error, "request_id": None}}
        message = self._messages.whole(model_request, answered, name=self._calls.name(), created=0)
        message["usage"]["service_tier"] = "batch"
        return {"type": "succeeded", "message": message}


def _limit(request: HttpRequest) -> int:
    asked = request.query.get("limit", str(_PAGE))
    if not asked.isdecimal() or not 1 <= int(asked) <= _MOST_ON_A_PAGE:
        raise invalid(f"limit: Input should be from 1 to {_MOST_ON_A_PAGE}")
    return int(asked)


def _place(names: list[str], name: str, param: str) -> int:
    if name not in names:
        raise invalid(f"{param}: no such Message Batch: {name}")
    return names.index(name)


def _times(course: BatchSchedule, *, has_ended: bool) -> dict[str, str | None]:
    times: dict[str, datetime | None] = {
        "created_at": course.created,
        "expires_at": course.expires,
        "ended_at": course.ended if has_ended else None,
        "cancel_initiated_at": course.canceled,
        "archived_at": None,
    }
    return {name: None if moment is None else rfc3339(moment) for name, moment in times.items()}
