"""Handling of a call: authenticated, admitted, subjected to a drawn fault, answered after its latency."""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from itertools import count

from scoreline.provider_sim.answers import ModelRequest, SimulatedAnswer, answer
from scoreline.provider_sim.faults import draw_fault, draw_latency, uniform
from scoreline.provider_sim.http_messages import (
    ApiError,
    ConnectionAborted,
    HttpReply,
    HttpRequest,
    Json,
    in_json,
    invalid,
)
from scoreline.provider_sim.limits import CallWeight, SimulatedLane, SimulatedLanes
from scoreline.provider_sim.provider_api import ProviderApi
from scoreline.provider_sim.replies import streamed_reply, whole_reply
from scoreline.provider_sim.settings import SimulatedRateLimits, SimulatorSettings
from scoreline.provider_sim.stats import CallStats

_FIRST_WORD = 1 / 3
"""When a stream begins, as a share of the time the whole answer takes."""


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The drawn fault and latency of an admitted call."""

    fault: str | None
    latency: float


class CallHandler:
    """Answers single calls, in any api."""

    def __init__(
        self, settings: SimulatorSettings, *, clock: Callable[[], float], utc_now: Callable[[], datetime]
    ) -> None:
        self.settings = settings
        self.stats = CallStats()
        self.utc_now = utc_now
        self._clock = clock
        self._began = clock()
        self._lanes = SimulatedLanes()
        self._names = count(1)
        self._birth = int(utc_now().timestamp())

    def reset(self) -> None:
        """Reset counts and buckets; calls in flight stay."""
        self.stats.forget()
        self._lanes = SimulatedLanes()
        self._began = self._clock()

    def name(self) -> str:
        """Return a new id, unique across all simulators."""
        return f"01sim{self._birth:010d}{next(self._names):09d}"

    async def serve(self, request: HttpRequest, api: ProviderApi) -> HttpReply:
        """Answer a call, reject it, or apply its fault."""
        headers = {api.request_id_header: f"req_{self.name()}"}
        try:
            model_request, answered = self._parse_body(request, api)
            self._admit(model_request, answered, key=request.key, api=api, headers=headers)
            return await self._answer(model_request, answered, api=api, headers=headers)
        except ApiError as refused:
            body = api.error(refused, headers[api.request_id_header])
            return in_json(refused.status, body, headers)

    def check_key(self, key: str) -> None:
        """Reject a call without a key, or with an unknown one."""
        known = self.settings.access.keys
        if not key:
            raise ApiError(401, "authentication_error", "x-api-key header is required")
        if known and key not in known:
            raise ApiError(401, "authentication_error", "invalid x-api-key", code="invalid_api_key")

    def _check_ask(self, model_request: ModelRequest) -> None:
        access = self.settings.access
        if access.models and model_request.model not in access.models:
            raise ApiError(404, "not_found_error", f"model: {model_request.model}", code="model_not_found")
        if model_request.model in access.forbidden_models:
            raise ApiError(
                403, "permission_error", f"Your API key may not use the model {model_request.model}"
            )
        if model_request.input_tokens > access.context_tokens:
            raise invalid(
                f"prompt is too long: {model_request.input_tokens} tokens "
                f"> {access.context_tokens} maximum",
                param="messages",
                code="context_length_exceeded",
            )

    def parse(self, params: Json, api: ProviderApi) -> tuple[ModelRequest, SimulatedAnswer]:
        """Read a request and think of the answer."""
        try:
            model_request = api.read(params)
            answered = answer(model_request, self.settings.answers)
        except (AttributeError, TypeError, KeyError):
            # Deep inside, something is of a kind that no check has thought of.
            raise invalid("The request is not of the expected form") from None
        self._check_ask(model_request)
        return model_request, answered

    def _parse_body(self, request: HttpRequest, api: ProviderApi) -> tuple[ModelRequest, SimulatedAnswer]:
        self.check_key(request.key)
        api.check_headers(request.headers)
        params = read_json(request)
        parsed = self.parse(params, api)
        self.stats.bodies.append(params)
        return parsed

    def _admit(
        self,
        model_request: ModelRequest,
        answered: SimulatedAnswer,
        *,
        key: str,
        api: ProviderApi,
        headers: dict[str, str],
    ) -> None:
        """Admit the call, or reject it with Retry-After; rate limit headers are set either way."""
        limits, now, lane = self.settings.limits, self._clock(), self._lane(key, model_request.model)
        if limits.concurrency and self.stats.in_flight >= limits.concurrency:
            headers |= {"retry-after": "1", **self._limit_headers(lane, api)}
            raise _limited("concurrent connections", code="requests")
        short = lane.admit(CallWeight(model_request.input_tokens, answered.output_tokens), now=now)
        headers |= self._limit_headers(lane, api)
        if short:
            headers["retry-after"] = _retry_after(short.retry_after, limits)
            raise _limited(f"{short.kind.replace('-', ' ')} per minute", code=short.kind)
        self.stats.admitted[int(now - self._began)] += 1

    def _lane(self, key: str, model: str) -> SimulatedLane:
        hashed = blake2b(key.encode(), digest_size=8).hexdigest()
        return self._lanes.lane(self.settings.limits, key=hashed, model=model, now=self._clock())

    def _limit_headers(self, lane: SimulatedLane, api: ProviderApi) -> Mapping[str, str]:
        if not self.settings.limits.limit_headers:
            return {}
        return api.limit_headers(lane.statuses(self._clock()), self.utc_now())

    def _fate(self, model_request: ModelRequest) -> CallPlan:
        about = (self.settings.answers.seed, model_request.digest, self.stats.visited(model_request.digest))
        fault = draw_fault(
            self.settings.faults, streamed=model_request.streamed, fortune=uniform(*about, "fault")
        )
        if fault:
            self.stats.faults[fault] += 1
        return CallPlan(fault, draw_latency(self.settings.latency, uniform(*about, "latency")))

    async def _answer(
        self,
        model_request: ModelRequest,
        answered: SimulatedAnswer,
        *,
        api: ProviderApi,
        headers: dict[str, str],
    ) -> HttpReply:
        """Wait for the latency; the call is in flight until its last byte has been sent."""
        plan = self._fate(model_request)
        if plan.fault == "overloaded":
            raise api.overloaded
        if plan.fault == "stray_429":
            raise ApiError(429, "rate_limit_error", "Please try again", code="requests")
        self.stats.began()
        try:
            await asyncio.sleep(plan.latency * (_FIRST_WORD if model_request.streamed else 1))
            reply = self._reply(model_request, answered, plan=plan, api=api, headers=headers)
        except BaseException:
            self.stats.ended()
            raise
        return replace(reply, done=self.stats.ended)

    def _reply(
        self,
        model_request: ModelRequest,
        answered: SimulatedAnswer,
        *,
        plan: CallPlan,
        api: ProviderApi,
        headers: dict[str, str],
    ) -> HttpReply:
        if plan.fault == "server_error":
            raise api.broken
        if plan.fault == "reset_before":
            raise ConnectionAborted(plan.fault)
        if plan.fault is None:
            self.stats.answer(model_request.digest, model_request.input_tokens, answered.output_tokens)
        name, created = self.name(), int(self.utc_now().timestamp())
        if not model_request.streamed:
            body = api.whole(model_request, answered, name=name, created=created)
            return whole_reply(body, headers, fault=plan.fault)
        return streamed_reply(
            list(api.stream(model_request, answered, name=name, created=created)),
            headers,
            fault=plan.fault,
            error=api.stream_error(),
            seconds=plan.latency * (1 - _FIRST_WORD),
        )


def read_json(request: HttpRequest) -> Json:
    """Read the body, if it is one."""
    if request.too_large:
        raise ApiError(413, "request_too_large", "Request exceeds the maximum size")
    try:
        return request.json()
    except (ValueError, RecursionError):
        raise invalid("The request body is not valid JSON") from None


def _limited(what: str, *, code: str) -> ApiError:
    message = f"This request would exceed your organization's rate limit: {what}"
    return ApiError(429, "rate_limit_error", message, code=code)


def _retry_after(seconds: float, limits: SimulatedRateLimits) -> str:
    seconds = max(seconds, limits.retry_after)
    return f"{seconds:.3f}" if limits.fractional_retry_after else str(max(1, math.ceil(seconds)))
