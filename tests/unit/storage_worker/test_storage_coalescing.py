"""The coalescer of the storage worker: requests that arrive during a pass share the next one."""

import asyncio
from collections.abc import Sequence

import pytest

from storage_worker.storage import RequestCoalescer


class Passes:
    """Records the evaluations of each pass, and ends no pass before the test allows it."""

    def __init__(self) -> None:
        self.requested: list[list[str]] = []
        self.may_end = asyncio.Event()

    async def __call__(self, evaluation_ids: Sequence[str]) -> None:
        self.requested.append(list(evaluation_ids))
        await self.may_end.wait()


async def test_a_single_request_starts_at_once():
    """Without other requests the first pass begins immediately."""
    passes = Passes()
    passes.may_end.set()
    await RequestCoalescer(passes, limit=1).submit(["a"])
    assert passes.requested == [["a"]]


async def test_requests_during_a_pass_share_the_next_one():
    """The shared pass stores each evaluation once, and every caller returns when it ends."""
    passes = Passes()
    coalescer = RequestCoalescer(passes, limit=1)
    first = asyncio.create_task(coalescer.submit(["a"]))
    await asyncio.sleep(0)
    others = [asyncio.create_task(coalescer.submit(ids)) for ids in (["b", "a"], ["c"], ["b"])]
    await asyncio.sleep(0)
    assert passes.requested in ([], [["a"]])
    passes.may_end.set()
    await asyncio.gather(first, *others)
    assert passes.requested == [["a"], ["b", "a", "c"]]


async def test_an_error_of_a_pass_is_raised_to_every_caller():
    """No caller of a failed pass takes its evaluations for stored."""

    async def fail(_ids: Sequence[str]) -> None:
        raise ConnectionError

    coalescer = RequestCoalescer(fail)
    outcomes = await asyncio.gather(
        coalescer.submit(["a"]), coalescer.submit(["b"]), return_exceptions=True
    )
    assert [type(each) for each in outcomes] == [ConnectionError, ConnectionError]


async def test_a_cancelled_caller_does_not_end_the_pass_of_others():
    """A stopping subscriber is cancelled; the pass continues for the other callers."""
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
    assert passes.requested == [["a", "b"]]
