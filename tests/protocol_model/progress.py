"""From where does no way lead to the end? Walks backwards over every step that is not a fault."""

from collections.abc import Callable

from tests.protocol_model.invariants import Invariant
from tests.protocol_model.search import Findings, mask_of
from tests.protocol_model.world import SlotState, World

Goal = Callable[[World], bool]


def ended(world: World) -> bool:
    """Whether the evaluation has come to its end."""
    return world.postgres.ended


def clean(world: World) -> bool:
    """Whether besides the end is published, no executor works any more, and the stream may expire."""
    idle = world.executor_0.slot is world.executor_1.slot is SlotState.IDLE
    idle = idle and world.worker_0 is None and world.worker_1 is None
    # An end by opening is news to the executor at work; an owner's own closing event is not.
    known = world.postgres.published or world.postgres.sequence > 0
    return ended(world) and idle and known and world.stream.newest <= world.postgres.attempt


GOALS: dict[Invariant, tuple[Goal, tuple[str, ...]]] = {
    Invariant.ENDS: (ended, ("postgres",)),
    Invariant.CLEANS_UP: (
        clean,
        ("postgres", "stream", "executor_0", "executor_1", "worker_0", "worker_1"),
    ),
}
"""What every world must have a way to, and the parts that decide whether it is there."""


def stuck(findings: Findings) -> dict[Invariant, list[int]]:
    """Name the worlds without a way to each goal; only a complete search can prove it."""
    if not findings.is_complete:
        return {}
    lost = {invariant: _without_a_way(findings, *goal) for invariant, goal in GOALS.items()}
    return {invariant: worlds for invariant, worlds in lost.items() if worlds}


def _without_a_way(findings: Findings, goal: Goal, parts: tuple[str, ...]) -> list[int]:
    arrives = bytearray(_arrived(findings, goal, parts))
    spreading = True
    # Most steps lead to worlds found later, so that a few passes from the last to the first suffice.
    while spreading:
        spreading = False
        for source, target in zip(reversed(findings.sources), reversed(findings.targets), strict=True):
            if arrives[target] and not arrives[source]:
                arrives[source] = spreading = True
    return [at for at, arrived in enumerate(arrives) if not arrived]


def _arrived(findings: Findings, goal: Goal, parts: tuple[str, ...]) -> list[bool]:
    mask, known = mask_of(parts), dict[int, bool]()
    for world in findings.worlds:
        view = world & mask
        if view not in known:
            known[view] = goal(findings.catalogue.world(world))
    return [known[world & mask] for world in findings.worlds]
