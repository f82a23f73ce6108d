"""The channel of the `code` evaluator: only a request and the echo of the sentinel are a proof."""

import asyncio
import os
import resource
import socket
from collections.abc import Callable

import pytest

from executor.evaluators.code_driver import SENTINEL_BYTES, TICKET_BYTES
from executor.evaluators.completion import CompletionChannel, completion_channel


def _request(fd: int) -> bytes:
    os.write(fd, os.read(fd, TICKET_BYTES))
    return os.read(fd, SENTINEL_BYTES)


def _honest(fd: int) -> None:
    os.write(fd, _request(fd))


def _echo_and_more(fd: int) -> None:
    os.write(fd, _request(fd) + b"x")


def _guess(fd: int) -> None:
    _request(fd)
    os.write(fd, bytes(SENTINEL_BYTES))


def _request_twice(fd: int) -> None:
    os.write(fd, os.read(fd, TICKET_BYTES) * 2)


def _noise_first(fd: int) -> None:
    os.write(fd, b"x" + os.read(fd, TICKET_BYTES))


def _no_ticket(fd: int) -> None:
    assert os.read(fd, TICKET_BYTES)
    os.write(fd, bytes(TICKET_BYTES))


def _shut_down(fd: int) -> None:
    with socket.socket(fileno=os.dup(fd)) as channel:
        channel.shutdown(socket.SHUT_RDWR)


def _silence(fd: int) -> None:
    assert fd


async def complete(program: Callable[[int], None]) -> bool:
    """Run the program's side in a thread, and judge what it sent."""
    with completion_channel() as channel:
        await asyncio.wait_for(asyncio.to_thread(program, channel.descriptor), 10)
        return channel.is_complete()


async def test_the_request_and_the_echo_are_a_proof() -> None:
    """A driver that regains control after the program passes."""
    assert await complete(_honest)


@pytest.mark.parametrize(
    "program", [_silence, _no_ticket, _guess, _echo_and_more, _request_twice, _noise_first, _shut_down]
)
async def test_anything_else_is_none(program: Callable[[int], None]) -> None:
    """No guess, noise, repeated request or closed channel proves an end, and none blocks the executor."""
    assert not await complete(program)


@pytest.mark.parametrize(("limit", "lowest"), [(1_024, 768), (512, 384)])
async def test_the_program_s_descriptor_is_high(
    limit: int, lowest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number does not depend on what else the executor has open, and is below the executor's limit."""
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    with completion_channel() as first, completion_channel() as second:
        assert (first.descriptor, second.descriptor) == (lowest, lowest + 1)
        assert not os.get_inheritable(first.descriptor)


async def test_the_sentinel_is_new_for_each_run_and_released_only_on_request() -> None:
    """Before the request the channel holds the ticket alone; a sentinel is valid for one run."""
    channels = [CompletionChannel(), CompletionChannel()]
    for channel in channels:
        held = socket.fromfd(channel.descriptor, socket.AF_UNIX, socket.SOCK_STREAM)
        assert len(held.recv(1_000, socket.MSG_PEEK)) == TICKET_BYTES
        held.close()
    released = [await asyncio.to_thread(_request, channel.descriptor) for channel in channels]
    assert len({*released, b""}) == 3
    for channel in channels:
        channel.close()


async def test_no_sentinel_is_released_to_a_request_without_the_ticket() -> None:
    """A program that sends something else learns nothing, whatever it may send later."""
    with completion_channel() as channel:
        assert os.read(channel.descriptor, TICKET_BYTES)
        os.write(channel.descriptor, bytes(TICKET_BYTES))
        assert not channel.is_complete()
        os.set_blocking(channel.descriptor, False)
        with pytest.raises(BlockingIOError):
            os.read(channel.descriptor, SENTINEL_BYTES)
