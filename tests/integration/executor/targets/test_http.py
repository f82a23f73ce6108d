"""HTTP targets against a real server on loopback."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.redaction import redact
from executor.contract import (
    CallFault,
    ExecutionEnvironment,
    NoConnection,
    Permanent,
    RateLimited,
    TargetRequest,
    Transient,
    Unreachable,
)
from executor.targets.http import HTTP, HttpTarget

SECRET = "canary-7f3a"


@dataclass
class Server:
    """Answers each path with its configured bytes, and keeps the requests."""

    port: int = 0
    replies: dict[str, bytes] = field(default_factory=dict)
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def reports(self, body: object = "", *, path: str = "/", status: int = 200, **headers: str) -> str:
        raw = (
            body
            if isinstance(body, bytes)
            else (body if isinstance(body, str) else json.dumps(body)).encode()
        )
        lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(raw)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.replies[path] = ("\r\n".join(lines) + "\r\n\r\n").encode() + raw
        return self.url(path)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := (await reader.readuntil(b"\r\n\r\n")).decode():
                self.heads.append(head)
                length = next(
                    (int(x[15:]) for x in head.lower().split("\r\n") if x.startswith("content-length:")), 0
                )
                self.bodies.append(await reader.readexactly(length))
                reply = self.replies[head.split()[1]]
                if reply == b"hang up":
                    break
                writer.write(reply)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    made = Server()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.port = listening.sockets[0].getsockname()[1]
    yield made
    listening.close()


def question(**fields) -> TargetRequest:
    return TargetRequest("b.1", "report hi", p.Case(id="c"), fields, timeout=5)


@asynccontextmanager
async def target(url: str, slots: int = 2, **options: Any) -> AsyncIterator[HttpTarget]:
    HTTP.check({"url": url, **options})
    made = HTTP.make({"url": url, **options}, ExecutionEnvironment(slots=slots, environ={"TOKEN": SECRET}))
    try:
        yield made
    finally:
        await made.aclose()


async def ask(url: str, **options) -> p.Answer:
    async with target(url, **options) as made:
        return (await made.call(question(city="Rome", n=3))).answer


async def fault(url: str, **options) -> CallFault:
    with pytest.raises(CallFault) as caught:
        await ask(url, **options)
    return caught.value


async def test_a_prompt_is_posted_and_the_answer_is_extracted(server):
    """By default the prompt is sent as `input`, and the answer is found under its usual names."""
    answer = await ask(server.reports({"answer": "hi", "id": 1}))
    assert answer.output == "hi"
    assert answer.latency_ms > 0
    assert json.loads(server.bodies[0]) == {"input": "report hi"}
    assert server.heads[0].startswith("POST / ")


@pytest.mark.parametrize(
    ("body", "output"),
    [
        ("plain", "plain"),
        ('"text"', "text"),
        ({"other": 1}, '{"other": 1}'),
        ({"output": {"a": 1}}, '{"a":1}'),
        ("", ""),
    ],
)
async def test_a_reply_without_the_usual_names_is_the_answer(server, body, output):
    """A reply that is not JSON, or has no known field, is the answer as a whole."""
    assert (await ask(server.reports(body))).output == output


async def test_the_body_is_a_template_and_paths_locate_answer_usage_and_cost(server):
    """Only strings are templates; the paths may be nested."""
    url = server.reports(
        {"choices": [{"m": "hi"}], "u": {"prompt_tokens": 3, "completion_tokens": 4}, "cost": 0.5}
    )
    body = {"q": ["{prompt}", {"in": "{city} {n}"}], "t": 0.5, "stream": False}
    answer = await ask(url, body=body, output="choices.0.m", usage="u", cost="cost")
    assert (answer.output, answer.usage, answer.cost_usd) == ("hi", p.TokenUsage(3, 4), 0.5)
    assert json.loads(server.bodies[0]) == {"q": ["report hi", {"in": "Rome 3"}], "t": 0.5, "stream": False}


@pytest.mark.parametrize(
    ("status", "made", "kind"),
    [
        (500, Unreachable, "http_500"),
        (503, Unreachable, "http_503"),
        (408, Transient, "http_408"),
        (425, Transient, "http_425"),
        (404, Permanent, "http_404"),
        (401, Permanent, "http_401"),
        (304, Permanent, "http_304"),
    ],
)
async def test_a_status_is_a_fault_of_the_right_kind(server, status, made, kind):
    """Transient statuses are retryable; the error quotes the beginning of the body."""
    got = await fault(server.reports("" if status == 304 else "so " + "x" * 1_000, status=status))
    assert (type(got), got.kind) == (made, kind)
    assert len(got.message) < 400


@pytest.mark.parametrize(
    ("header", "low", "high"),
    [
        ("7", 7, 7),
        ("0", 0, 0),
        ("999999999999", 3600, 3600),
        ("soon", 1, 1),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 0, 0),
    ],
)
async def test_a_rate_limit_has_its_retry_after(server, header, low, high):
    """It is in seconds or a date, at most an hour, and never negative."""
    got = await fault(server.reports("slow down", status=429, Retry_After=header))
    assert isinstance(got, RateLimited)
    assert got.retry_after is not None
    assert low <= got.retry_after.total_seconds() <= high


async def test_a_rate_limit_may_name_a_date(server):
    """The date is relative to now."""
    date = format_datetime(utc_now() + timedelta(minutes=5), usegmt=True)
    got = await fault(server.reports("slow down", status=429, Retry_After=date))
    assert isinstance(got, RateLimited)
    assert got.retry_after is not None
    assert timedelta(minutes=4) < got.retry_after <= timedelta(minutes=5)


async def test_an_invalid_reply_is_classified(server):
    """Broken JSON may be an accident, so it is transient; JSON of another shape is permanent."""
    got = await fault(server.reports("<html>"), output="a.b")
    assert (type(got), got.kind) == (Transient, "garbage")
    got = await fault(server.reports({"a": 1}), output="a.b")
    assert (type(got), got.kind) == (Permanent, "no_output")
    got = await fault(server.reports(b"not gzip", Content_Encoding="gzip"))
    assert (type(got), got.kind) == (Transient, "garbage")


@pytest.mark.parametrize(("coding", "encode"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_compressed_reply_without_its_end_is_a_transient_error(server, coding, encode):
    """A partial answer would be scored as a whole one."""
    body = encode(b"The answer is not 4, but 5.")
    assert (await ask(server.reports(body, Content_Encoding=coding))).output.endswith("5.")
    assert (await ask(server.reports(b"", Content_Encoding=coding))).output == ""
    for cut in (1, 8, 12):
        got = await fault(server.reports(body[:-cut], Content_Encoding=coding))
        assert (type(got), got.kind) == (Transient, "garbage")
    got = await fault(server.reports(body[:-1], status=503, Content_Encoding=coding))
    assert (type(got), got.kind) == (Unreachable, "http_503")


@pytest.mark.parametrize("body", ['{"output": NaN}', r'{"output": "\ud800"}', '{"output": "x"', "plain"])
@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "application/problem+JSON"])
async def test_a_reply_announced_as_json_that_is_none_is_no_answer(server, body, content_type):
    """Without the content type, it is plain text."""
    got = await fault(server.reports(body, Content_Type=content_type))
    assert (type(got), got.kind) == (Transient, "garbage")
    assert (await ask(server.reports(body, Content_Type="text/plain"))).output == body


async def test_json_without_an_answer_is_taken_as_it_is(server):
    """This holds with the content type, too, and for an empty body."""
    for body in ('{"other": 1}', "null", "[1]", ""):
        assert (await ask(server.reports(body, Content_Type="application/json"))).output == body


async def test_a_connection_that_fails_is_a_transient_error(server):
    """A refused connection, a dropped one and an unknown host name are all retryable."""
    server.replies["/"] = b"hang up"
    refused = await asyncio.start_server(lambda r, w: None, "127.0.0.1", 0)
    port = refused.sockets[0].getsockname()[1]
    refused.close()
    await refused.wait_closed()
    for url in (server.url(), f"http://127.0.0.1:{port}/", "http://no-such-host.invalid/"):
        for options in ({}, {"allow": ["127.0.0.1", "no-such-host.invalid"]}):
            got = await fault(url, **options)
            kind = Unreachable if url == server.url() else NoConnection
            assert (type(got), got.kind) == (kind, "connection")


async def test_a_reply_without_end_is_not_read_to_its_end(server):
    """Reading stops at the limit, so a server cannot fill the executor's memory."""
    server.replies["/"] = b"HTTP/1.1 200 X\r\nContent-Length: 99999999999\r\n\r\n" + b"x" * 200_000
    got = await fault(server.url(), max_bytes=100_000)
    assert (type(got), got.kind) == (Permanent, "too_large")


async def test_a_redirect_is_followed_on_the_same_server_only(server):
    """Another host or port would get the request's secrets."""
    server.reports("there", path="/there")
    assert (await ask(server.reports(status=307, Location="/there"))).output == "there"
    assert [head.split()[0] for head in server.heads] == ["POST", "POST"]
    for elsewhere in (f"http://localhost:{server.port}/there", "http://127.0.0.1:1/", "file:///etc/passwd"):
        got = await fault(server.reports(status=302, Location=elsewhere))
        assert (type(got), got.kind) == (Permanent, "redirect")
    assert (await fault(server.reports(status=307, Location="/"))).kind == "redirect"


@pytest.mark.parametrize(
    ("method", "status"),
    [("POST", 301), ("POST", 302), ("POST", 303), ("PUT", 302), ("PUT", 303), ("PATCH", 303)],
)
async def test_a_redirect_that_drops_the_body_is_refused(server, method, status):
    """The page that it leads to is no answer."""
    server.reports("a page", path="/page?token=1")
    got = await fault(server.reports(status=status, Location="/page?token=1"), method=method)
    assert (type(got), got.kind) == (Permanent, "redirect")
    assert f"http://127.0.0.1:{server.port} " in got.message
    assert "write the final address into `url`" in got.message
    assert "token" not in got.message
    assert len(server.heads) == 1


@pytest.mark.parametrize(
    ("method", "status"),
    [("POST", 307), ("POST", 308), ("PUT", 301), ("GET", 301), ("GET", 302), ("GET", 303)],
)
async def test_a_redirect_that_keeps_method_and_body_is_followed(server, method, status):
    """The second request is the first one, at another path; a GET has no body to lose."""
    server.reports("there", path="/there")
    assert (await ask(server.reports(status=status, Location="/there"), method=method)).output == "there"
    assert [head.split()[0] for head in server.heads] == [method, method]
    assert server.bodies[0] == server.bodies[1]


async def test_a_secret_is_sent_and_never_reported(server):
    """A header's value comes from the environment; it is known as a secret from then on."""
    headers = {"Authorization": "Bearer $TOKEN", "X-Plain": "yes"}
    answer = await ask(server.reports({"output": f"your key is {SECRET}"}), headers=headers)
    assert f"Bearer {SECRET}".lower() in server.heads[0].lower()
    assert redact(answer.output) == "your key is ***"
    got = await fault(server.reports(f"bad key {SECRET}", status=401), headers=headers)
    assert got.message == "the server answered 401: bad key ***"


async def test_a_secret_that_is_not_there_is_named(server):
    """An executor without the variable names it in the error and sends no request."""
    got = await fault(server.url(), headers={"X-Api-Key": "$NO_SUCH"})
    assert (type(got), got.kind) == (Permanent, "configuration")
    assert "$NO_SUCH" in got.message
    assert not server.heads


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        ({"url": "ftp://h/"}, "must start with http"),
        ({"url": "http:///x"}, "must start with http"),
        ({"url": "http://me:pw@h/"}, "send credentials in a header"),
        (
            {"url": "http://h/", "headers": {"Authorization": "Bearer sk-1"}},
            "would be stored with the batch",
        ),
        ({"url": "http://h/", "headers": {"X Y": "1"}}, "is not the name of a header"),
        ({"url": "http://h/", "headers": {"X": "a\r\nY: b"}}, "can't be sent"),
        ({"url": "http://h/", "allow": []}, "allow"),
        ({"url": "http://h/", "ouput": "x"}, "did you mean 'output'"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, reported):
    """So are passwords that would be stored."""
    with pytest.raises(ValueError, match=reported) as caught:
        HTTP.check(options)
    assert "sk-1" not in str(caught.value)
    assert ":pw@" not in str(caught.value)


async def test_a_private_address_is_refused_by_what_it_is_not_by_its_name(server):
    """The address that would be connected to is checked, whatever name leads there; nothing is sent."""
    server.reports("hi")
    for host in ("127.0.0.1", "localhost"):
        got = await fault(f"http://{host}:{server.port}/", deny_private=True)
        assert (type(got), got.kind) == (Permanent, "forbidden_address")
    assert (await fault(server.url(), allow=["example.org", "10.0.0.0/8"])).kind == "forbidden_address"
    assert not server.connections


async def test_the_checked_address_is_the_connected_one(server, monkeypatch):
    """The name is resolved once, and the request connects to the checked address."""
    lookups = []

    async def changing(host, port):
        lookups.append(host)
        return ["127.0.0.1"] if len(lookups) == 1 else ["10.255.255.1"]

    monkeypatch.setattr("executor.targets.addresses.resolve", changing)
    server.reports("hi")
    url = f"http://rebinding.test:{server.port}/"
    assert (await ask(url, allow=["127.0.0.0/8"])).output == "hi"
    assert lookups == ["rebinding.test"]
    assert f"host: rebinding.test:{server.port}" in server.heads[0].lower()
    assert (await fault(url, allow=["127.0.0.0/8"])).kind == "forbidden_address"


async def test_another_address_is_tried_where_the_first_does_not_answer(server, monkeypatch):
    """A host may have several addresses, and one may be down."""

    async def two(host, port):
        return ["127.0.0.2", "127.0.0.1"]

    monkeypatch.setattr("executor.targets.addresses.resolve", two)
    server.reports("hi")
    assert (await ask(f"http://two.test:{server.port}/", allow=["127.0.0.0/8"])).output == "hi"


async def test_the_addresses_of_a_name_that_are_special_are_not_tried(server, monkeypatch):
    """Each address of a name is checked; only the permitted ones are connected to."""

    async def mixed(host, port):
        return ["127.0.0.1", "::ffff:127.0.0.1", "fec0::1"]

    monkeypatch.setattr("executor.targets.addresses.resolve", mixed)
    server.reports("hi")
    got = await fault(f"http://mixed.test:{server.port}/", deny_private=True)
    assert got.kind == "forbidden_address"
    assert (await ask(f"http://mixed.test:{server.port}/", allow=["127.0.0.0/8"])).output == "hi"
    assert server.connections == 1


async def test_connections_are_kept_and_as_many_as_there_are_slots(server):
    """Twenty requests do not open twenty connections."""
    server.reports("hi", Set_Cookie="seen=1")
    async with target(server.url(), slots=2) as made:
        await asyncio.gather(*(made.call(question()) for _ in range(20)))
    assert server.connections <= 2
    assert len(server.heads) == 20
    assert not any("cookie:" in head.lower() for head in server.heads)


async def test_a_field_that_the_case_lacks_is_a_fault(server):
    """No request is sent with an empty placeholder."""
    got = await fault(server.url(), body={"x": "{nowhere}"})
    assert (type(got), got.kind) == (Permanent, "template")
    assert not server.heads
