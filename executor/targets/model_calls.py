"""Model calls: one client per model and process, through the provider's official SDK.

The SDK's retries are off, since lanes and attempts decide when to retry. Replies are parsed as plain JSON
and validated by `providers.requests`, so that invalid replies are detected in one place, and a streamed
reply gives the same answer as an unstreamed one.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import Any

import httpx2
from pydantic import BaseModel

from domain.batch_spec import Options
from eventlog.clock import utc_now
from eventlog.redaction import KNOWN
from eventlog.secret_sources import secrets_in_url
from executor.contract import ExecutionEnvironment
from executor.targets.headers import fill_in
from executor.targets.model_faults import broken_off, fault_of
from executor.targets.model_options import PriceOptions
from executor.targets.telemetry import counting_errors
from providers.bounded_replies import EVENT_STREAM
from providers.clients import anthropic_client, errors_of, http_timeout, openai_client
from providers.endpoint import ModelEndpoint, endpoint_of
from providers.json_reader import read_json
from providers.limits import RateLimits
from providers.prices import FREE, Price, price_of
from providers.rate_limit_headers import limits_of
from providers.requests import InvalidReply, characters_of, max_output_of
from providers.streams import StreamAccumulator, gathering
from providers.table import Sdk
from taskqueue.budget.estimates import RequestSize

_NAMED = frozenset({"model", "messages", "max_tokens", "system", "stream_options"})
"""Parameters of the SDKs' methods; all others go into the body, for the provider to validate."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A reply, not yet read."""

    message: object
    limits: RateLimits | None = None
    latency_ms: float = 0.0


class ModelCaller:
    """A model that can be called."""

    def __init__(
        self, access: ModelEndpoint, open_client: Callable[[], Any], price: Price | None = None
    ) -> None:
        self.access = access
        self.price = price
        self._open_client = open_client
        self._client: Any = None
        self._endpoint: Any = None
        self._opening = asyncio.Lock()

    async def call(self, params: Mapping[str, Any], *, timeout: float, stream: bool = False) -> ModelReply:  # noqa: ASYNC109 - the SDK's
        """Make one call; raises a `CallFault`."""
        with counting_errors(self.access.provider.name):
            return await self._call(params, timeout, stream=stream)

    async def _call(self, params: Mapping[str, Any], seconds: float, *, stream: bool) -> ModelReply:
        await self.open()
        arguments = {**_arguments(params), "timeout": http_timeout(seconds)}
        gathered = gathering(self._sdk) if stream else None
        started = perf_counter()
        try:
            called = await (
                self._in_pieces(arguments, gathered) if gathered else self._in_one_piece(arguments)
            )
        except errors_of(self.access.provider) as error:
            came = gathered.text if gathered else ""
            raise fault_of(error, self.access, now=utc_now(), came=came) from None
        return replace(called, latency_ms=(perf_counter() - started) * 1e3)

    def size_of(self, params: Mapping[str, Any]) -> RequestSize:
        """Measure what would be sent."""
        price = self.price or FREE
        return RequestSize(characters_of(params), max_output_of(params), price.input, price.output)

    async def aclose(self) -> None:
        """Close all connections."""
        if self._client is not None:
            await self._client.close()

    async def open(self) -> None:
        """Make the client, once, in a thread: seconds of importing would stop the heartbeat."""
        async with self._opening:
            if self._client is None:
                await asyncio.to_thread(self._open_now)

    def _open_now(self) -> None:
        client = self._open_client()
        self._endpoint = client.messages if self._sdk is Sdk.ANTHROPIC else client.chat.completions
        self._client = client

    async def _in_one_piece(self, arguments: Mapping[str, Any]) -> ModelReply:
        raw = await self._endpoint.with_raw_response.create(
            **arguments, extra_headers={"Accept": "application/json"}
        )
        response: httpx2.Response = raw.http_response
        return ModelReply(read_json(await response.aread()), self._limits(response.headers))

    async def _in_pieces(self, arguments: Mapping[str, Any], gathered: StreamAccumulator) -> ModelReply:
        accept = {"Accept": EVENT_STREAM}  # by which the reply's limit is chosen
        stream = await self._endpoint.create(
            **arguments, **self._stream_options, stream=True, extra_headers=accept
        )
        async with stream:
            async for piece in stream:
                gathered.add(_plain(piece))
        if not gathered.is_whole:
            raise broken_off(self.access, gathered.text, "it ended before its end")
        return ModelReply(gathered.whole(), self._limits(stream.response.headers))

    @property
    def _sdk(self) -> Sdk:
        return self.access.provider.sdk or Sdk.OPENAI

    @property
    def _stream_options(self) -> dict[str, Any]:
        asked = self._sdk is Sdk.OPENAI and self.access.provider.stream_usage
        return {"stream_options": {"include_usage": True}} if asked else {}

    def _limits(self, headers: Mapping[str, str]) -> RateLimits | None:
        return limits_of(self.access.provider.limit_headers, headers, now=utc_now())


def make_caller(
    provider: str,
    options: Options,
    environment: ExecutionEnvironment,
    *,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> ModelCaller:
    """Make what calls a model; raises `ValueError` with a sentence, such as for a missing key."""
    access = endpoint_of(provider, options, environment.environ)
    KNOWN.add({access.key} | secrets_in_url(access.base_url))
    headers: Any = options.get("headers") or {}
    open_client = anthropic_client if access.provider.sdk is Sdk.ANTHROPIC else openai_client
    open_late = partial(
        open_client,
        access,
        slots=environment.slots,
        headers=fill_in(headers, environment.environ),
        transport=transport,
    )
    return ModelCaller(access, open_late, _price(access, options, environment))


def _price(access: ModelEndpoint, options: Options, environment: ExecutionEnvironment) -> Price | None:
    if prices := options.get("prices"):
        own = PriceOptions.model_validate(prices)
        return Price(own.input, own.output)
    return price_of(access.provider.name, access.model, environment.environ)


def _arguments(params: Mapping[str, Any]) -> dict[str, Any]:
    named = {name: value for name, value in params.items() if name in _NAMED}
    return {**named, "extra_body": {name: value for name, value in params.items() if name not in _NAMED}}


def _plain(piece: object) -> Mapping[str, Any]:
    if not isinstance(piece, BaseModel):
        raise InvalidReply("a piece of the stream is no object")
    return piece.model_dump(warnings=False)
