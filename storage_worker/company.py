"""Work in company: what is asked for while others are at it is done together, in the next pass.

A pass costs much the same for one evaluation as for a hundred. Under load those who come while passes are
under way would each begin a small one; here they wait for the next, and share it. Alone, nobody waits.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

AT_ONCE = 2
"""Passes at a time: one waits for its servers while the other is worked out."""


class Company:
    """Gathers what several callers want done."""

    def __init__(self, do: Callable[[Sequence[str]], Awaitable[None]], *, at_once: int = AT_ONCE) -> None:
        self._do = do
        self._turns = asyncio.Semaphore(at_once)
        self._wanted: dict[str, None] = {}
        self._next: asyncio.Task[None] | None = None

    async def join(self, evaluation_ids: Sequence[str]) -> None:
        """Have evaluations looked at in the next pass; raises what the pass raises."""
        self._wanted |= dict.fromkeys(evaluation_ids)
        if self._next is None:
            self._next = asyncio.create_task(self._pass())
        # Shielded: one caller that gives up must not end the pass of the others.
        await asyncio.shield(self._next)

    async def _pass(self) -> None:
        async with self._turns:
            wanted, self._wanted, self._next = list(self._wanted), {}, None
            await self._do(wanted)
