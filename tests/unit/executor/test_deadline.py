"""A deadline whose timer is set only once the call suspends behaves like one set from the start."""

import asyncio

import pytest

from executor.deadline import DeadlineExceeded, with_deadline

LONG = 3_600.0


async def answer(*waits: float) -> str:
    for seconds in waits:
        await asyncio.sleep(seconds)
    return "answer"


async def for_ever() -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize("waits", [(), (0.0,), (0.0, 0.001, 0.0)])
async def test_a_call_before_its_deadline_returns(waits):
    """Whether it suspends never, once or often."""
    assert await with_deadline(LONG, answer(*waits)) == "answer"


async def test_a_call_beyond_its_deadline_is_cancelled():
    """It may clean up, and the task that awaited it goes on."""
    cleaned: list[str] = []

    async def tidy() -> None:
        try:
            await for_ever()
        finally:
            await asyncio.sleep(0)
            cleaned.append("up")

    with pytest.raises(DeadlineExceeded) as overdue:
        await with_deadline(0.001, tidy())
    assert overdue.value.seconds == 0.001
    assert cleaned == ["up"]
    task = asyncio.current_task()
    assert task
    assert not task.cancelling()
    await asyncio.sleep(0)


@pytest.mark.parametrize("waits", [(), (0.0,)])
async def test_an_exception_of_the_call_is_raised(waits):
    """Also a timeout of its own, which is not the deadline."""

    async def fails() -> None:
        await answer(*waits)
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await with_deadline(LONG, fails())


async def test_nested_deadlines_are_distinguished():
    """The inner one is set first, and each is raised where it belongs."""

    async def impatient() -> str:
        try:
            async with asyncio.timeout(0.001):
                await for_ever()
        except TimeoutError:
            return "gave up"
        return "never"

    async def patient() -> None:
        async with asyncio.timeout(LONG):
            await for_ever()

    assert await with_deadline(LONG, impatient()) == "gave up"
    with pytest.raises(DeadlineExceeded):
        await with_deadline(0.001, patient())


async def test_cancellation_reaches_the_work():
    """It is no timeout, and it passes through in both directions."""
    cancelled = asyncio.Event()

    async def listens() -> None:
        try:
            await for_ever()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    task = asyncio.create_task(with_deadline(LONG, listens()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert cancelled.is_set()


async def test_child_tasks_of_the_call_are_awaited():
    """A task group that was entered before the timer was set is left in order."""

    async def together() -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answer(0.0)) for _ in range(3)]
        return [task.result() for task in tasks]

    assert await with_deadline(LONG, together()) == ["answer"] * 3


async def test_any_awaitable_may_have_a_deadline():
    """A future has no first step."""
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with pytest.raises(DeadlineExceeded):
        await with_deadline(0.001, never)
