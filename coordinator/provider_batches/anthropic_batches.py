"""Anthropic's Message Batches API through its SDK, with retries off: a submission is not idempotent.

The body of a submission is streamed to the SDK's transport, so that a large batch is never held in memory.
Results are read line by line.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx2

from coordinator.provider_batches.provider import (
    BatchProvider,
    BatchResult,
    Errored,
    NoResponse,
    NotProcessed,
    RemoteBatchStatus,
    SubmissionRejected,
    Succeeded,
)
from coordinator.provider_batches.result_file import BrokenResultFile, read_results
from domain.batch_spec import TargetSpec
from eventlog.clock import utc_now
from eventlog.redaction import KNOWN
from eventlog.secret_sources import secrets_in_url
from projections.ledger.provider_batches import RequestCounts
from providers.bounded_replies import LINES, Redirected
from providers.clients import MissingSdk, anthropic_client, errors_of, http_timeout
from providers.decompression import ReplyRefused
from providers.endpoint import ModelEndpoint, endpoint_of
from providers.errors import ErrorClass, classify_error, parse_error
from providers.headers import fill_in
from providers.rate_limit_headers import retry_after
from providers.table import PROVIDERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from anthropic import AsyncAnthropic

PATH = "/v1/messages/batches"
CALL = 60.0
"""Time-out in seconds of one call, except those that send or read a whole batch."""
PAGE = 100
MAX_PAGES = 100
ONE_CALL_EACH = {"Connection": "close"}
"""Calls are rare: no connection is kept alive for the next, so none is left to close at shutdown."""
INTERNAL_ERROR = (500, "api_error")
"""Status and type of Anthropic's own error; the reply of a gateway has another status or body."""
_PASSING = frozenset({408, 409, 425, 429, 529})


class AnthropicBatches:
    """`BatchProvider` on the Message Batches API."""

    def __init__(self, access: ModelEndpoint, client: "AsyncAnthropic") -> None:
        self._access = access
        self._client = client
        self._batches = client.messages.batches
        self._errors = errors_of(access.provider)

    async def create(self, body: AsyncIterator[bytes], *, length: int) -> RemoteBatchStatus:
        """Submit a batch, whose JSON comes in pieces; raises `SubmissionRejected` or `NoResponse`."""
        from anthropic.types.messages import MessageBatch  # noqa: PLC0415 - it takes a second

        headers = {"Content-Type": "application/json", "Content-Length": str(length)}
        with self._translated_errors():
            created = await self._client.post(
                PATH, cast_to=MessageBatch, content=body, options={"headers": headers}
            )
            return _seen(created)

    async def retrieve(self, provider_id: str) -> RemoteBatchStatus:
        """Return the status of a batch."""
        with self._translated_errors():
            async with asyncio.timeout(CALL):
                return _seen(await self._batches.retrieve(provider_id, timeout=http_timeout(CALL)))

    async def list(self, *, since: datetime) -> AsyncGenerator[RemoteBatchStatus, None]:
        """List the batches created since a time, the newest first."""
        with self._translated_errors():
            async with asyncio.timeout(CALL):
                page = await self._batches.list(limit=PAGE, timeout=http_timeout(CALL))
            for _ in range(MAX_PAGES):
                for seen in map(_seen, page.data):
                    if seen.created_at < since:
                        return
                    yield seen
                if not page.has_next_page():
                    return
                async with asyncio.timeout(CALL):
                    page = await page.get_next_page()
            raise ValueError(f"the list of batches has more than {MAX_PAGES} pages")

    async def results(self, provider_id: str) -> AsyncGenerator[BatchResult, None]:
        """Read the results of a batch that has ended, in any order."""
        with self._translated_errors():
            response = await self._result_file(provider_id)
            try:
                pieces = response.aiter_bytes()
                async with aclosing(read_results(pieces, provider_id=provider_id)) as results:
                    async for result in results:
                        yield _result(result)
            finally:
                await response.aclose()

    async def _result_file(self, provider_id: str) -> httpx2.Response:
        """Request the results from the host of the submission; `results_url` could name any host."""
        from anthropic._decoders.jsonl import AsyncJSONLDecoder  # noqa: PLC0415 - it takes a second

        client: Any = self._client  # its types allow only event streams
        path, accept = f"{PATH}/{quote(provider_id, safe='')}/results", {"headers": {"Accept": LINES}}
        async with asyncio.timeout(CALL):
            found = await client.get(path, cast_to=AsyncJSONLDecoder[object], options=accept, stream=True)
        response: httpx2.Response = found.http_response
        return response

    async def cancel(self, provider_id: str) -> None:
        """Request cancellation; idempotent."""
        with self._translated_errors():
            async with asyncio.timeout(CALL):
                await self._batches.cancel(provider_id, timeout=http_timeout(CALL))

    @contextmanager
    def _translated_errors(self) -> "Iterator[None]":
        """Translate the SDK's errors to those of the port."""
        try:
            yield
        except self._errors as error:
            raise _translated(error, self._access) from None
        except TimeoutError:
            late = f"{self._access.provider.title} did not reply within {CALL:g} s"
            raise NoResponse(late) from None


def _translated(error: Exception, access: ModelEndpoint) -> NoResponse | SubmissionRejected:
    response: httpx2.Response | None = getattr(error, "response", None)
    title = access.provider.title
    cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__
    if isinstance(cause, ReplyRefused):
        refused = f"{title} at {access.place}: {cause}"
        # A redirect proves that nothing was created; a reply that was not read proves nothing.
        return SubmissionRejected(refused) if isinstance(cause, Redirected) else NoResponse(refused)
    if response is None or response.status_code < 400:
        why = error if isinstance(error, BrokenResultFile) else type(error).__name__
        return NoResponse(f"{title} can't be reached at {access.place}: {why}")
    status, headers = response.status_code, response.headers
    refusal = parse_error(status, getattr(error, "body", None))
    failure = classify_error(refusal, access, retry_after=retry_after(headers, now=utc_now()))
    if status >= 500 and status not in _PASSING:
        has_ended = (status, refusal.type) == INTERNAL_ERROR
        return NoResponse(failure.message, retry_after=failure.retry_after, has_ended=has_ended)
    is_passing = status in _PASSING and failure.of is not ErrorClass.PERMANENT
    return SubmissionRejected(failure.message, retry_after=failure.retry_after, is_passing=is_passing)


def _seen(batch: Any) -> RemoteBatchStatus:  # noqa: ANN401 - the SDK does not check what it was sent
    try:
        counts = RequestCounts(**batch.request_counts.model_dump(include=set(RequestCounts.__slots__)))
        return RemoteBatchStatus(batch.id, batch.created_at, counts, batch.processing_status == "ended")
    except (AttributeError, TypeError) as error:
        raise ValueError(f"the reply is not a batch: {error}") from None


def _result(line: Mapping[str, Any]) -> BatchResult:
    name, result = str(line.get("custom_id")), _mapping(line.get("result"))
    match result.get("type"):
        case "succeeded":
            return BatchResult(name, Succeeded(_mapping(result.get("message"))))
        case "errored":
            error = _mapping(result.get("error"))
            inner = _mapping(error.get("error")) or error
            return BatchResult(
                name, Errored(str(inner.get("type") or "api_error"), str(inner.get("message") or ""))
            )
        case other:
            return BatchResult(name, NotProcessed(str(other or "unknown")))


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


class AnthropicAccounts:
    """Creates one client per account."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        transport: Callable[[], httpx2.AsyncBaseTransport] | None = None,
    ) -> None:
        self._environ = environ
        self._transport = transport
        self._made: dict[tuple[str, str, str], AnthropicBatches] = {}

    def __call__(self, target: TargetSpec) -> BatchProvider:
        """Return the provider of a target; raises `SubmissionRejected` if a key or the SDK is missing."""
        provider = PROVIDERS[target.type]
        variable = str(target.options.get("key_variable") or provider.key_variable)
        if not self._environ.get(variable, "").strip():
            raise SubmissionRejected(
                f"{provider.title} needs a key: {variable} is not set where the coordinator runs"
            )
        try:
            access = endpoint_of(target.type, target.options, self._environ)
            return self._client(access, target)
        except (MissingSdk, ValueError) as error:
            raise SubmissionRejected(str(error)) from None

    def _client(self, access: ModelEndpoint, target: TargetSpec) -> AnthropicBatches:
        headers: Any = target.options.get("headers") or {}
        key = (access.base_url, access.key, repr(sorted(headers.items())))
        if key not in self._made:
            KNOWN.add({access.key} | secrets_in_url(access.base_url))
            transport = self._transport() if self._transport else None
            filled = fill_in(headers, self._environ)
            client = anthropic_client(access, headers={**filled, **ONE_CALL_EACH}, transport=transport)
            self._made[key] = AnthropicBatches(access, client)
        return self._made[key]
