"""A limit that is set only once something waits behaves as one that was set from the start."""

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
async def test_what_is_done_in_time_returns(waits):
    """Whether it waits never, once or often."""
    assert await with_deadline(LONG, answer(*waits)) == "answer"


async def test_what_waits_too_long_is_overdue():
    """It is cancelled, may clean up, and the task it ran in goes on."""
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
async def test_what_the_work_raises_is_raised(waits):
    """Also a time-out of its own, which is not ours."""

    async def fails() -> None:
        await answer(*waits)
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await with_deadline(LONG, fails())


async def test_limits_within_limits_are_told_apart():
    """The inner one was set first, and each is raised where it belongs."""

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
    """It is no time-out, and it goes all the way in and all the way out."""
    heard = asyncio.Event()

    async def listens() -> None:
        try:
            await for_ever()
        except asyncio.CancelledError:
            heard.set()
            raise

    task = asyncio.create_task(with_deadline(LONG, listens()))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert heard.is_set()


async def test_tasks_of_its_own_are_waited_for():
    """A group that was opened before the limit was set is left in order."""

    async def together() -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(answer(0.0)) for _ in range(3)]
        return [task.result() for task in tasks]

    assert await with_deadline(LONG, together()) == ["answer"] * 3


async def test_whatever_can_be_awaited_may_be_limited():
    """A future has no beginning of its own."""
    never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    with pytest.raises(DeadlineExceeded):
        await with_deadline(0.001, never)
