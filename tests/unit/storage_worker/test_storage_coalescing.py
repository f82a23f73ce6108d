"""Passes of the storage worker: those who come while passes are under way share the next."""

import asyncio
from collections.abc import Sequence

import pytest

from storage_worker.storage import RequestCoalescer


class Passes:
    """Remembers what each pass was asked for, and lets none end before it is told to."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.may_end = asyncio.Event()

    async def __call__(self, evaluation_ids: Sequence[str]) -> None:
        self.asked.append(list(evaluation_ids))
        await self.may_end.wait()


async def test_alone_nobody_waits():
    """The first pass begins at once."""
    passes = Passes()
    passes.may_end.set()
    await RequestCoalescer(passes, limit=1).submit(["a"])
    assert passes.asked == [["a"]]


async def test_those_who_come_meanwhile_share_the_next_pass():
    """Each evaluation is looked at once in it, and everybody is told when it is done."""
    passes = Passes()
    coalescer = RequestCoalescer(passes, limit=1)
    first = asyncio.create_task(coalescer.submit(["a"]))
    await asyncio.sleep(0)
    others = [asyncio.create_task(coalescer.submit(ids)) for ids in (["b", "a"], ["c"], ["b"])]
    await asyncio.sleep(0)
    assert passes.asked in ([], [["a"]])
    passes.may_end.set()
    await asyncio.gather(first, *others)
    assert passes.asked == [["a"], ["b", "a", "c"]]


async def test_what_a_pass_raises_everybody_hears_who_was_in_it():
    """Nobody takes for stored what was not."""

    async def fail(_ids: Sequence[str]) -> None:
        raise ConnectionError

    coalescer = RequestCoalescer(fail)
    told = await asyncio.gather(coalescer.submit(["a"]), coalescer.submit(["b"]), return_exceptions=True)
    assert [type(each) for each in told] == [ConnectionError, ConnectionError]


async def test_one_who_gives_up_does_not_end_the_pass_of_the_others():
    """A stopping subscriber is cancelled; the others' pass goes on."""
    passes = Passes()
    coalescer = RequestCoalescer(passes)
    leaving = asyncio.create_task(coalescer.submit(["a"]))
    staying = asyncio.create_task(coalescer.submit(["b"]))
    await asyncio.sleep(0)
    leaving.cancel()
    passes.may_end.set()
    await staying
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert passes.asked == [["a", "b"]]
