"""The channel of the `code` evaluator: only a request and the echo of the sentinel are a proof."""

import asyncio
import os
import socket
from collections.abc import Callable

import pytest

from executor.evaluators.code_driver import FINISHED, SENTINEL_BYTES
from executor.evaluators.completion import CompletionChannel, completion_channel


def _request(fd: int) -> bytes:
    os.write(fd, FINISHED)
    return os.read(fd, SENTINEL_BYTES)


def _honest(fd: int) -> None:
    os.write(fd, _request(fd))


def _echo_and_more(fd: int) -> None:
    os.write(fd, _request(fd) + b"x")


def _guess(fd: int) -> None:
    _request(fd)
    os.write(fd, bytes(SENTINEL_BYTES))


def _request_twice(fd: int) -> None:
    os.write(fd, FINISHED * 2)


def _noise_first(fd: int) -> None:
    os.write(fd, b"x" + FINISHED)


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
    "program", [_silence, _guess, _echo_and_more, _request_twice, _noise_first, _shut_down]
)
async def test_anything_else_is_none(program: Callable[[int], None]) -> None:
    """No guess, noise, repeated request or closed channel proves an end, and none blocks the executor."""
    assert not await complete(program)


async def test_the_sentinel_is_new_for_each_run_and_released_only_on_request() -> None:
    """Before the request the channel holds nothing to read; a sentinel is valid for one run."""
    channels = [CompletionChannel(), CompletionChannel()]
    for channel in channels:
        os.set_blocking(channel.descriptor, False)
        with pytest.raises(BlockingIOError):
            os.read(channel.descriptor, 1)
        os.set_blocking(channel.descriptor, True)
    released = [await asyncio.to_thread(_request, channel.descriptor) for channel in channels]
    assert len({*released, b""}) == 3
    for channel in channels:
        channel.close()
