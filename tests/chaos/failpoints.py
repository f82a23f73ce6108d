"""Failpoints: the product has none. In a child's own process its functions are wrapped, and a wrapper
ends the process by `kill -9` at the wanted call.
"""

import os
import signal
from collections.abc import Callable
from functools import wraps
from typing import Any


def after(owner: Any, name: str, observe: Callable[[Any], None]) -> None:
    """Call an observer with the result of an asynchronous function before its caller gets it."""
    original = getattr(owner, name)

    @wraps(original)
    async def observed(*arguments: Any, **keywords: Any) -> Any:
        value = await original(*arguments, **keywords)
        observe(value)
        return value

    setattr(owner, name, observed)


def before(owner: Any, name: str, act: Callable[[], None]) -> None:
    """Do something each time before an asynchronous function is called."""
    original = getattr(owner, name)

    @wraps(original)
    async def preceded(*arguments: Any, **keywords: Any) -> Any:
        act()
        return await original(*arguments, **keywords)

    setattr(owner, name, preceded)


def fuse(at_call: int) -> Callable[..., None]:
    """Make a function that ends this process when it is called for the n-th time."""
    calls = iter(range(at_call, 0, -1))

    def burn(*_: object) -> None:
        if next(calls, 1) == 1:
            os.kill(os.getpid(), signal.SIGKILL)

    return burn
