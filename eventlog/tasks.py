"""Ending background tasks for certain."""

import asyncio
from collections.abc import Collection
from typing import Any


async def end(tasks: Collection["asyncio.Task[Any]"]) -> None:
    """Cancel until all have ended: on Python 3.11 a time-out inside a client library may swallow one."""
    waiting = {task for task in tasks if not task.done()}
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=0.5)
    await asyncio.gather(*tasks, return_exceptions=True)
