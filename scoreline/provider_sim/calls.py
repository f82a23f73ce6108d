"""A call's way through the simulator: checked, taken on, struck by a fault or not, answered in its time."""

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from itertools import count

from scoreline.provider_sim.answers import Ask, Said, answer
from scoreline.provider_sim.dialect import Dialect
from scoreline.provider_sim.faults import draw_fault, draw_latency, luck
from scoreline.provider_sim.limits import Cost, Lane, Lanes
from scoreline.provider_sim.replies import streamed_reply, whole_reply
from scoreline.provider_sim.settings import Limits, Settings
from scoreline.provider_sim.stats import Stats
from scoreline.provider_sim.wire import BreakOff, Json, Refused, Reply, Request, in_json, invalid

_FIRST_WORD = 1 / 3
"""When a stream begins, as a share of the time the whole answer takes."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a call that was taken on."""

    fault: str | None
    latency: float


class Calls:
    """Answers single calls, in any dialect."""

    def __init__(
        self, settings: Settings, *, clock: Callable[[], float], wall: Callable[[], datetime]
    ) -> None:
        self.settings = settings
        self.stats = Stats()
        self.wall = wall
        self._clock = clock
        self._began = clock()
        self._lanes = Lanes()
        self._names = count(1)
        self._birth = int(wall().timestamp())

    def reset(self) -> None:
        """Forget what was seen and what was charged; what is under way stays."""
        self.stats.forget()
        self._lanes = Lanes()
        self._began = self._clock()

    def name(self) -> str:
        """Name something new: no simulator before or after this one uses the name."""
        return f"01sim{self._birth:010d}{next(self._names):09d}"

    async def serve(self, request: Request, dialect: Dialect) -> Reply:
        """Answer a call, refuse it, or let it meet its fault."""
        headers = {dialect.request_id_header: f"req_{self.name()}"}
        try:
            ask, said = self._understood(request, dialect)
            self._admit(ask, said, key=request.key, dialect=dialect, headers=headers)
            return await self._answer(ask, said, dialect=dialect, headers=headers)
        except Refused as refused:
            body = dialect.error(refused, headers[dialect.request_id_header])
            return in_json(refused.status, body, headers)

    def check_key(self, key: str) -> None:
        """Refuse who has no key, or one that is not known."""
        known = self.settings.access.keys
        if not key:
            raise Refused(401, "authentication_error", "x-api-key header is required")
        if known and key not in known:
            raise Refused(401, "authentication_error", "invalid x-api-key", code="invalid_api_key")

    def _check_ask(self, ask: Ask) -> None:
        access = self.settings.access
        if access.models and ask.model not in access.models:
            raise Refused(404, "not_found_error", f"model: {ask.model}", code="model_not_found")
        if ask.model in access.forbidden_models:
            raise Refused(403, "permission_error", f"Your API key may not use the model {ask.model}")
        if ask.input_tokens > access.context_tokens:
            raise invalid(
                f"prompt is too long: {ask.input_tokens} tokens > {access.context_tokens} maximum",
                param="messages",
                code="context_length_exceeded",
            )

    def understand(self, params: Json, dialect: Dialect) -> tuple[Ask, Said]:
        """Read a request and think of the answer."""
        try:
            ask = dialect.read(params)
            said = answer(ask, self.settings.answers)
        except (AttributeError, TypeError, KeyError):
            # Deep inside, something is of a kind that no check has thought of.
            raise invalid("The request is not of the expected form") from None
        self._check_ask(ask)
        return ask, said

    def _understood(self, request: Request, dialect: Dialect) -> tuple[Ask, Said]:
        self.check_key(request.key)
        dialect.check_headers(request.headers)
        params = read_json(request)
        understood = self.understand(params, dialect)
        self.stats.bodies.append(params)
        return understood

    def _admit(self, ask: Ask, said: Said, *, key: str, dialect: Dialect, headers: dict[str, str]) -> None:
        """Take the call on, or say at once when to come again; how the limits stand is said either way."""
        limits, now, lane = self.settings.limits, self._clock(), self._lane(key, ask.model)
        if limits.concurrency and self.stats.in_flight >= limits.concurrency:
            headers |= {"retry-after": "1", **self._standings(lane, dialect)}
            raise _limited("concurrent connections", code="requests")
        short = lane.admit(Cost(ask.input_tokens, said.output_tokens), now=now)
        headers |= self._standings(lane, dialect)
        if short:
            headers["retry-after"] = _retry_after(short.retry_after, limits)
            raise _limited(f"{short.kind.replace('-', ' ')} per minute", code=short.kind)
        self.stats.admitted[int(now - self._began)] += 1

    def _lane(self, key: str, model: str) -> Lane:
        hashed = blake2b(key.encode(), digest_size=8).hexdigest()
        return self._lanes.lane(self.settings.limits, key=hashed, model=model, now=self._clock())

    def _standings(self, lane: Lane, dialect: Dialect) -> Mapping[str, str]:
        if not self.settings.limits.limit_headers:
            return {}
        return dialect.limit_headers(lane.standings(self._clock()), self.wall())

    def _fate(self, ask: Ask) -> Fate:
        about = (self.settings.answers.seed, ask.digest, self.stats.visited(ask.digest))
        fault = draw_fault(self.settings.faults, streamed=ask.streamed, fortune=luck(*about, "fault"))
        if fault:
            self.stats.faults[fault] += 1
        return Fate(fault, draw_latency(self.settings.latency, luck(*about, "latency")))

    async def _answer(self, ask: Ask, said: Said, *, dialect: Dialect, headers: dict[str, str]) -> Reply:
        """Let the call take its time; it is under way until the last word has been sent."""
        fate = self._fate(ask)
        if fate.fault == "overloaded":
            raise dialect.overloaded
        self.stats.began()
        try:
            await asyncio.sleep(fate.latency * (_FIRST_WORD if ask.streamed else 1))
            reply = self._reply(ask, said, fate=fate, dialect=dialect, headers=headers)
        except BaseException:
            self.stats.ended()
            raise
        return replace(reply, done=self.stats.ended)

    def _reply(
        self, ask: Ask, said: Said, *, fate: Fate, dialect: Dialect, headers: dict[str, str]
    ) -> Reply:
        if fate.fault == "server_error":
            raise dialect.broken
        if fate.fault == "reset_before":
            raise BreakOff(fate.fault)
        if fate.fault is None:
            self.stats.answer(ask.digest, ask.input_tokens, said.output_tokens)
        name, created = self.name(), int(self.wall().timestamp())
        if not ask.streamed:
            body = dialect.whole(ask, said, name=name, created=created)
            return whole_reply(body, headers, fault=fate.fault)
        return streamed_reply(
            list(dialect.stream(ask, said, name=name, created=created)),
            headers,
            fault=fate.fault,
            error=dialect.stream_error(),
            seconds=fate.latency * (1 - _FIRST_WORD),
        )


def read_json(request: Request) -> Json:
    """Read the body, if it is one."""
    if request.too_large:
        raise Refused(413, "request_too_large", "Request exceeds the maximum size")
    try:
        return request.json()
    except (ValueError, RecursionError):
        raise invalid("The request body is not valid JSON") from None


def _limited(what: str, *, code: str) -> Refused:
    message = f"This request would exceed your organization's rate limit: {what}"
    return Refused(429, "rate_limit_error", message, code=code)


def _retry_after(seconds: float, limits: Limits) -> str:
    return f"{seconds:.3f}" if limits.fractional_retry_after else str(max(1, math.ceil(seconds)))
