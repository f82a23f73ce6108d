"""Whole lives of evaluations, and every way a network may hand them over.

lives(random)            some evaluations, each a list of attempts, each a list of events
in_order(lives)          their events as they were written
arrivals(random, lives)  the same events in any order that the protocol admits, some more than once:
                         sequence 0 of a higher attempt is written after all of the lower one has been
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from eventlog import payloads as p
from eventlog.events import Event, EventKey
from tests.builders import history

Attempts = list[list[Event]]
CLOSINGS: dict[int, list[str]] = {
    0: ["", "failed"],
    1: ["", "retrying", "failed", "timed_out"],
    2: ["", "completed", "completed", "retrying", "failed", "timed_out"],
    3: ["", "completed", "completed", "completed", "retrying", "failed", "timed_out"],
}
"""How an attempt may close after so many steps towards an answer."""
COSTS = (0.0, 0.1, 0.25, 1e-7, 3.3)


def lives(random: Random, *, most: int = 4) -> list[Attempts]:
    """Make up to so many evaluations that share a batch."""
    return [_life(random, f"evaluation-{n}") for n in range(random.randint(1, most))]


def _life(random: Random, evaluation_id: str) -> Attempts:
    """Make one evaluation's attempts: retried, lost, reopened, cancelled, or simply run."""
    attempts: Attempts = []
    opening = "queued"
    for attempt in range(1, random.choice([1, 1, 2, 3]) + 1):
        words = [opening]
        if opening.startswith("queued"):
            steps = random.randint(0, 3)
            words += ["provisioning", "running", "responded"][:steps]
            words += ["scored"] * (random.randint(0, 3) if steps == 3 else 0)
            words += [random.choice(CLOSINGS[steps])]
        made = history(" ".join(words), evaluation_id=evaluation_id, attempt=attempt, **_payloads(random))
        attempts.append(made)
        match made[-1].type:
            case "completed" | "cancelled":
                break
            case "failed" | "timed_out":
                opening = "queued:operator"
            case _:
                opening = random.choice(["queued:retry", "queued:lost", "cancelled", "timed_out"])
    return attempts


def _payloads(random: Random) -> dict[str, Any]:
    def usage() -> p.TokenUsage:
        return p.TokenUsage(input_tokens=random.randint(0, 9), output_tokens=random.randint(0, 9))

    verdict = p.Completed(
        verdict=random.choice(["passed", "failed"]),
        score=random.choice([None, 0.1, 1.0]),
        usage=usage(),
        cost_usd=random.choice(COSTS),
    )
    return {
        "provisioning": p.Provisioning(executor=f"executor-{random.randint(1, 3)}", nonce="nonce-1"),
        "responded": p.Responded(
            output="4", usage=usage(), cost_usd=random.choice(COSTS), cached=random.random() < 0.2
        ),
        "scored": p.Scored(evaluator="judge", score=0.5, usage=usage(), cost_usd=random.choice(COSTS)),
        "completed": verdict,
    }


def in_order(all_lives: Sequence[Attempts]) -> list[Event]:
    """Return everything as it was written, one evaluation after the other."""
    return [event for attempts in all_lives for events in attempts for event in events]


def arrivals(random: Random, all_lives: Sequence[Attempts]) -> list[Event]:
    """Jumble each evaluation's events, and let the evaluations' streams grow at the same time."""
    disordered = [_disordered(random, attempts) for attempts in all_lives]
    turns = [n for n, events in enumerate(disordered) for _ in events]
    random.shuffle(turns)
    streams = [iter(events) for events in disordered]
    return [next(streams[n]) for n in turns]


def _disordered(random: Random, attempts: Attempts) -> list[Event]:
    fences = [events[0] for events in attempts[1:]]
    free = attempts[0] + [event for events in attempts[1:] for event in events[1:]]
    order = free + [random.choice(free) for _ in range(random.choice([0, 0, 1, 3]))]
    random.shuffle(order)
    for fence in fences:
        earliest = _end_of_lower_attempts(order, fence.attempt)
        for _ in range(random.choice([1, 1, 2])):
            order.insert(random.randint(earliest, len(order)), fence)
    return order


def _end_of_lower_attempts(order: Sequence[Event], attempt: int) -> int:
    """Find the place where the last of the lower attempts' events arrives for the first time."""
    first: dict[EventKey, int] = {}
    for place, event in enumerate(order):
        first.setdefault(event.key, place)
    return 1 + max(place for (lower, _), place in first.items() if lower < attempt)
