"""HTTP targets: one request per evaluation, one connection pool per target.

The body is JSON whose strings are templates; in addition to the fields of the case they may name `prompt`,
the rendered prompt, and `history`, the earlier turns. Headers may name environment variables
(`headers.py`), addresses may be restricted (`addresses.py`), and a redirect is followed only on the same
server, or from http to https of the same host: the request is sent to no other host, and never without its
body. Replies are bounded like those of models (`providers.bounded_replies`). Cookies are not stored: one
evaluation must not change the reply to the next.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http.cookiejar import CookieJar, DefaultCookiePolicy
from time import perf_counter
from typing import Literal

import httpx2
from pydantic import Field, JsonValue, field_validator

from domain.batch_spec import Options
from domain.template import UnknownField, render
from eventlog.clock import utc_now
from executor.contract import (
    ExecutionEnvironment,
    Permanent,
    TargetReply,
    TargetRequest,
    Transient,
    Unreachable,
)
from executor.options import OptionModel, read_options
from executor.targets.addresses import AddressPolicy, CheckedTransport
from executor.targets.answers import too_large
from executor.targets.connections import no_connection
from executor.targets.headers import check_headers, check_query, fill_in, fill_in_query
from executor.targets.http_replies import ReplyPaths, answer_of, fault_of, is_json_type, text_encoding
from providers.bounded_replies import MAX_ERROR, ReplyLimit, ReplyLimiter
from providers.decompression import ACCEPTED, ReplyRefused, ReplyTooLarge

MAX_REDIRECTS = 5
CONNECT_TIMEOUT = 10.0
_DEFAULT_BODY: JsonValue = {"input": "{prompt}"}
_PORTS = {"http": 80, "https": 443}


class HttpOptions(OptionModel):
    """The request, and the paths of the answer in the reply."""

    url: str = Field(max_length=2_000)
    method: Literal["POST", "PUT", "PATCH", "GET"] = "POST"
    headers: dict[str, str] = Field(default_factory=dict)
    body: JsonValue = _DEFAULT_BODY
    output: str | None = None
    usage: str | None = None
    cost: str | None = None
    allow: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Hosts and networks that may be reached; without it, any."""
    deny_private: bool = False
    max_bytes: int = Field(default=1_000_000, ge=1, le=100_000_000)

    @field_validator("url")
    @classmethod
    def _is_an_address(cls, url: str) -> str:
        try:
            parsed = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise ValueError(f"not a URL: {error}") from None
        if parsed.scheme not in _PORTS or not parsed.host:
            raise ValueError("it must start with http:// or https:// and name a host")
        if parsed.userinfo:
            raise ValueError("it would be stored with its password; send credentials in a header as $NAME")
        check_query(url)
        return url

    @field_validator("headers")
    @classmethod
    def _can_be_sent(cls, headers: dict[str, str]) -> dict[str, str]:
        check_headers(headers)
        return headers

    @property
    def paths(self) -> ReplyPaths:
        """The paths of the answer in the reply."""
        return ReplyPaths(self.output, self.usage, self.cost)


@dataclass(frozen=True, slots=True)
class HttpTarget:
    """A server that answers."""

    options: HttpOptions
    client: httpx2.AsyncClient
    environ: Mapping[str, str]
    limiter: ReplyLimiter = field(default_factory=ReplyLimiter)

    async def call(self, question: TargetRequest) -> TargetReply:
        """Send one request and read its reply."""
        request = self._request(question)
        started = perf_counter()
        try:
            status, headers, body = await self._exchange(request)
        except ReplyTooLarge:
            limit = self.options.max_bytes
            raise too_large(f"the reply has more than {limit:,} bytes (max_bytes)") from None
        except ReplyRefused as refused:
            raise Permanent(refused.kind, str(refused)) from None
        except httpx2.TransportError as error:
            if unconnected := no_connection(error, _place(self.options.url)):
                raise unconnected from None
            raise Unreachable("connection", f"{type(error).__name__}: {error}") from None
        except httpx2.DecodingError as error:
            raise Transient("garbage", f"the reply can't be decoded: {error}") from None
        latency_ms = (perf_counter() - started) * 1e3
        if fault := fault_of(status, headers, body, now=utc_now()):
            raise fault
        is_json = is_json_type(headers.get("content-type", ""))
        return answer_of(body, self.options.paths, latency_ms=latency_ms, is_json=is_json)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.client.aclose()

    def _request(self, question: TargetRequest) -> httpx2.Request:
        options = self.options
        return self.client.build_request(
            options.method,
            fill_in_query(options.url, self.environ),
            headers=fill_in(options.headers, self.environ),
            json=None if options.method == "GET" else _filled(options.body, question),
            timeout=httpx2.Timeout(question.timeout, connect=min(CONNECT_TIMEOUT, question.timeout)),
        )

    async def _exchange(self, request: httpx2.Request) -> tuple[int, Mapping[str, str], str]:
        for _ in range(MAX_REDIRECTS + 1):
            async with self._sent(request) as response:
                if response.next_request is None:
                    body = await self._read(response)
                    return response.status_code, response.headers, body
                _refuse_other_hosts(request.url, response.next_request.url)
                _refuse_without_body(request, response.next_request, response.status_code)
                request = response.next_request
        raise Permanent("redirect", f"the server redirected more than {MAX_REDIRECTS} times")

    @asynccontextmanager
    async def _sent(self, request: httpx2.Request) -> AsyncIterator[httpx2.Response]:
        response = await self.client.send(request, stream=True)
        try:
            yield response
        finally:
            await response.aclose()

    async def _read(self, response: httpx2.Response) -> str:
        """Read a body up to its limit: raises `ReplyTooLarge` for an answer, and cuts an error."""
        most = self.options.max_bytes
        is_answer = response.status_code < 300
        limit = ReplyLimit(most) if is_answer else ReplyLimit(min(MAX_ERROR, most), is_cut=True)
        self.limiter.bound(response, limit)
        return (await response.aread()).decode(text_encoding(response.encoding), errors="replace")


class HttpType:
    """Creates HTTP targets."""

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        read_options(HttpOptions, options, of="the http target")

    def make(self, options: Options, environment: ExecutionEnvironment) -> HttpTarget:
        """Make one."""
        read = read_options(HttpOptions, options, of="the http target")
        return HttpTarget(read, _client(read, environment.slots), environment.environ)

    def lane(self, options: Options, environment: ExecutionEnvironment) -> str | None:  # noqa: ARG002 - a host needs no key
        """Name the lane by the server: the scope of its limits is unknown."""
        url = httpx2.URL(read_options(HttpOptions, options, of="the http target").url)
        return f"http:{url.netloc.decode()}"

    def tokens(self, options: Options) -> float:  # noqa: ARG002 - whatever they are
        """Guess nothing: a server need not count tokens."""
        return 0.0


HTTP = HttpType()


def _place(url: str) -> str:
    parsed = httpx2.URL(url)
    return f"{parsed.scheme}://{parsed.netloc.decode()}"


def _client(options: HttpOptions, slots: int) -> httpx2.AsyncClient:
    limits = httpx2.Limits(max_connections=max(1, slots), max_keepalive_connections=max(1, slots))
    transport: httpx2.AsyncBaseTransport = httpx2.AsyncHTTPTransport(limits=limits)
    policy = AddressPolicy.of(options.allow, deny_private=options.deny_private)
    if not policy.is_open:
        transport = CheckedTransport(policy, transport)
    no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
    headers = {"Accept-Encoding": ACCEPTED}
    return httpx2.AsyncClient(transport=transport, cookies=no_cookies, headers=headers, trust_env=False)


def _filled(body: JsonValue, question: TargetRequest) -> JsonValue:
    """Fill every text of the body in."""
    turns: JsonValue = [{"asked": asked, "answered": answered} for asked, answered in question.history]
    fields = {**question.fields, "prompt": question.prompt, "history": turns}
    try:
        return _rendered(body, fields)
    except UnknownField as error:
        raise Permanent(
            "template", f"the body names the field {error.name!r}, which the case lacks"
        ) from None


def _rendered(body: JsonValue, fields: Mapping[str, JsonValue]) -> JsonValue:
    match body:
        case str():
            return render(body, fields)
        case list():
            return [_rendered(part, fields) for part in body]
        case dict():
            return {key: _rendered(part, fields) for key, part in body.items()}
        case _:
            return body


def _refuse_other_hosts(here: httpx2.URL, there: httpx2.URL) -> None:
    """Follow a redirect only to the same server, or to the https server of the same host."""
    if _server(there) not in (_server(here), ("https", here.host, _PORTS["https"])):
        where = f"{there.scheme}://{there.netloc.decode()}"
        raise Permanent(
            "redirect", f"the server redirects to {where}; put that into the url if it is right"
        )


def _refuse_without_body(request: httpx2.Request, redirected: httpx2.Request, status: int) -> None:
    """Refuse a redirect that makes a GET of the request: the reply would be one to no question."""
    if redirected.method != request.method:
        where = f"{redirected.url.scheme}://{redirected.url.netloc.decode()}"
        raise Permanent(
            "redirect",
            f"the server answered {status}, a redirect to {where} that drops the body of a "
            f"{request.method}; write the final address into `url`",
        )


def _server(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port or _PORTS.get(url.scheme)
