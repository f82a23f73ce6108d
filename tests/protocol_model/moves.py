"""Steps: an actor reads some parts of the world and returns what they may become.

An actor's view is a named tuple: first its `Setup`, then the parts it sees. `step` makes the move.
What an actor does depends on its view alone, so the search asks only once for each view.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from tests.protocol_model.faults import Fault, spend
from tests.protocol_model.invariants import Invariant
from tests.protocol_model.rules import Rules
from tests.protocol_model.scenarios import Scenario
from tests.protocol_model.world import World

Check = Callable[[World, tuple[Any, ...]], tuple[Invariant, ...]]
"""Judges a move by the whole world before it and the actor's view after it."""


class Setup(NamedTuple):
    """What stays the same for an actor throughout a search."""

    name: str
    rules: Rules
    scenario: Scenario
    slot: int = 0


class Move(NamedTuple):
    """One step an actor may take: its words, the parts it sees as they are afterwards, what it breaks."""

    story: str
    after: tuple[Any, ...]
    is_fault: bool = False
    broken: tuple[Invariant, ...] = ()
    check: Check | None = None


class Actor(NamedTuple):
    """Someone who moves: the parts of the world it sees, by name, and what it may do there."""

    sees: tuple[str, ...]
    moves: Callable[..., Iterable[Move]]
    acts_while_first: tuple[str, ...] = ()
    """The actor moves only while these parts are as in the beginning."""
    rests_while_first: tuple[str, ...] = ()
    """The actor does not move while all these parts are as in the beginning."""


def step(
    view: Any,
    story: str,
    *,
    fault: Fault | None = None,
    broken: tuple[Invariant, ...] = (),
    check: Check | None = None,
    **changes: Any,
) -> Move:
    """Make a move from what it changes in the view; a fault is taken out of the budget."""
    if fault:
        changes["budget"] = spend(view.budget, fault)
    words = f"{view.setup.name} {story}" + f"   [{fault}]" * bool(fault)
    return Move(words, view._replace(**changes)[1:], fault is not None, broken, check)
