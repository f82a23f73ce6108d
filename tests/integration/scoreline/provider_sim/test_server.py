"""The simulator's connections, and its faults at the socket."""

import asyncio
import json
from typing import Any

import pytest

from scoreline.provider_sim.message_batches import PATH as BATCHES
from scoreline.provider_sim.simulator import Simulator
from tests.integration.scoreline.provider_sim.http_client import ASK, HEADERS, asking
from tests.provider import provider
from tests.waiting import until


def raw(body: object) -> bytes:
    data = json.dumps(body).encode()
    head = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    return (
        f"POST /v1/messages HTTP/1.1\r\nhost: x\r\n{head}content-length: {len(data)}\r\n\r\n".encode()
        + data
    )


async def answer(reader: asyncio.StreamReader) -> tuple[bytes, Any]:
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    return head.split(b"\r\n")[0], json.loads(await reader.readexactly(length))


async def connected(sim: Simulator) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, port = sim.base_url.removeprefix("http://").split(":")
    return await asyncio.open_connection(host, int(port))


async def test_a_connection_serves_many_requests_even_sent_at_once():
    """Pipelined requests are answered in order."""
    async with provider(mode="echo") as sim:
        reader, writer = await connected(sim)
        requests = [{**ASK, "messages": [{"role": "user", "content": str(i)}]} for i in range(5)]
        writer.write(b"".join(map(raw, requests)))
        texts = [(await answer(reader))[1]["content"][0]["text"] for _ in requests]
        assert sim.connections == 1
        writer.close()
    assert texts == ["0", "1", "2", "3", "4"]


async def test_a_lone_surrogate_is_replaced_in_the_answer():
    """JSON can hold a lone surrogate, UTF-8 can't."""
    async with asking(mode="echo") as (_, client):
        body = json.dumps({**ASK, "messages": [{"role": "user", "content": "a\ud800"}]})
        reply = await client.post("/v1/messages", content=body)
    assert reply.json()["content"][0]["text"] == "a?"


async def test_an_invalid_request_closes_only_its_own_connection():
    """A client that does not speak HTTP gets no answer; other clients do."""
    async with asking() as (sim, client):
        reader, writer = await connected(sim)
        writer.write(b"\x16\x03\x01 hello\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        assert (await client.post("/v1/messages", json=ASK)).status_code == 200


async def test_many_connections_are_held_at_once():
    """Three hundred calls are in flight together, each on its own connection."""
    async with provider(latency=1_000) as sim:
        pairs = await asyncio.gather(*(connected(sim) for _ in range(300)))
        for i, (_, writer) in enumerate(pairs):
            writer.write(raw({**ASK, "messages": [{"role": "user", "content": str(i)}]}))
        await until(lambda: sim.stats.in_flight == 300)
        for _, writer in pairs:
            writer.close()
    assert sim.stats.max_in_flight == 300


@pytest.mark.parametrize("fault", ["reset_before", "reset_midway"])
async def test_a_reset_fault_resets_the_connection(fault):
    """The client sees a connection reset, not an end of the stream."""
    async with provider(**{fault: 1}) as sim:
        reader, writer = await connected(sim)
        writer.write(raw(ASK))
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()
        assert sim.stats.faults == {fault: 1}
        await until(lambda: sim.stats.in_flight == 0)


async def test_half_of_the_reply_comes_before_the_reset():
    """The status is 200, and the body is shorter than its content length."""
    async with provider(reset_midway=1) as sim:
        reader, writer = await connected(sim)
        writer.write(raw(ASK))
        head = await reader.readuntil(b"\r\n\r\n")
        part = await reader.read(10)
        writer.close()
    assert b" 200 " in head
    assert part == b'{"id":"msg'


async def test_a_body_too_large_is_refused_after_it_was_read():
    """The sender can read the reason; bodies that are not JSON are refused, too."""
    async with asking() as (_, client):
        large = await client.post("/v1/messages", content=b" " * (33 * 1024 * 1024))
        wrong = await client.post("/v1/messages", content=b"{")
        deep = await client.post("/v1/messages", content=b"[" * 200_000)
        batch = await client.post(BATCHES, content=b'{"requests": [')
    assert (large.status_code, large.json()["error"]["type"]) == (413, "request_too_large")
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (400, "invalid_request_error")
    assert deep.status_code == 400
    assert (batch.status_code, batch.json()["error"]["type"]) == (400, "invalid_request_error")


async def test_a_large_batch_goes_through_a_file():
    """A batch has five thousand requests of a kilobyte each, and as many results."""
    body = {**ASK, "messages": [{"role": "user", "content": "x" * 1_000}]}
    requests = [{"custom_id": f"c{i}", "params": body} for i in range(5_000)]
    async with asking(batch_seconds=0, mode="text") as (_, client):
        batch = (await client.post(BATCHES, json={"requests": requests})).json()
        assert batch["request_counts"]["succeeded"] == 5_000
        lines = (await client.get(f"{BATCHES}/{batch['id']}/results")).text.splitlines()
    assert {json.loads(line)["custom_id"] for line in lines} == {f"c{i}" for i in range(5_000)}
