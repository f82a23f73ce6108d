"""Background tasks end for certain, whatever they do with a cancellation."""

import asyncio

from eventlog.tasks import end


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again():
    """A time-out inside a client library may catch the first one."""
    started = asyncio.Event()
    swallowed: list[str] = []

    async def stubborn() -> None:
        while True:
            try:
                started.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if swallowed:
                    raise
                swallowed.append("once")

    task = asyncio.create_task(stubborn())
    await started.wait()
    await end([task])
    assert task.cancelled()
    assert swallowed == ["once"]


async def test_the_error_of_an_ended_task_is_not_raised():
    """It belongs to the caller that awaits the task; ending goes on with the others."""

    async def failing() -> None:
        raise ValueError("a defect")

    failed = asyncio.create_task(failing())
    waiting = asyncio.create_task(asyncio.Event().wait())
    await asyncio.wait([failed])
    await end([failed, waiting])
    assert isinstance(failed.exception(), ValueError)
    assert waiting.cancelled()


async def test_no_tasks_end_at_once():
    """A component that never started has none."""
    await end([])
