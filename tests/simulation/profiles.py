"""Which faults a run has, and how often: drawn from the seed, within the bounds of its profile."""

from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random

GENERATION = 2
"""Raised when a change of the generator gives old seeds another meaning."""


class Profile(StrEnum):
    """The main kind of fault of a run."""

    CALM = "calm"
    PORTS = "flaky ports"
    LOSS = "Redis lost"
    DEATHS = "zombies and crashes"
    FOREIGN = "foreign producer"
    EVERYTHING = "everything"


def profile_of(seed: int) -> Profile:
    """Derive the profile from the seed, so that the seed alone identifies the run."""
    return list(Profile)[seed % len(Profile)]


@dataclass(frozen=True, slots=True)
class Faults:
    """How likely each fault is: of a call, or each second."""

    unreached: float = 0.0
    """Of a call: it fails before it takes effect."""
    reply_lost: float = 0.0
    """Of a call: it takes effect, and the caller sees a time-out."""
    belated: float = 0.0
    """Of a call: the caller sees a time-out, and afterwards it takes effect."""
    slow: float = 0.0
    """Of a call: it takes seconds."""
    killed: float = 0.0
    """Of a call: the caller crashes at it, before or after it has taken effect."""
    frozen: float = 0.0
    """Each second, of an executor: it freezes for longer than its heartbeat lasts."""
    stopped: float = 0.0
    """Each second, of an executor: it is stopped, and started again."""
    lost_whole: float = 0.0
    """Each second: Redis loses all its data."""
    lost_part: float = 0.0
    """Each second: Redis loses its last writes."""
    wake_ups: float = 0.0
    """Each second: wake-ups are lost, duplicated, reordered or invalid."""
    doubled_tasks: float = 0.0
    """Of a task: it is delivered twice."""
    clock_jumps: float = 0.0
    """Each second, of an executor: its wall clock is set."""
    strangers: int = 0
    """Evaluations that a foreign writer writes with plain XADDs."""
    mutations: float = 0.0
    """Of a foreign event: it is dropped, duplicated, swapped or corrupted."""
    pollution: float = 0.0
    """Each second: an invalid entry is written into a stream."""


def draw_faults(random: Random, profile: Profile) -> Faults:
    """Draw the rates of the faults."""
    calm = Faults(doubled_tasks=0.1)
    match profile:
        case Profile.CALM:
            return calm
        case Profile.PORTS:
            return _with_flaky_ports(random, calm)
        case Profile.LOSS:
            return _with_losses(random, calm)
        case Profile.DEATHS:
            return _with_deaths(random, calm)
        case Profile.FOREIGN:
            return _with_strangers(random, calm)
        case Profile.EVERYTHING:
            mild = _with_strangers(random, _with_deaths(random, _with_losses(random, calm)))
            return _with_flaky_ports(random, mild)


def _with_flaky_ports(random: Random, faults: Faults) -> Faults:
    worst = random.choice([0.02, 0.05, 0.15, 0.3])
    return replace(
        faults,
        unreached=random.uniform(0, worst),
        reply_lost=random.uniform(0, worst),
        belated=random.uniform(0, worst),
        slow=random.uniform(0, worst / 2),
        wake_ups=random.choice([0.0, 0.5]),
    )


def _with_losses(random: Random, faults: Faults) -> Faults:
    return replace(
        faults,
        lost_whole=random.choice([0.0, 0.1, 0.3]),
        lost_part=random.choice([0.1, 0.3]),
        reply_lost=random.uniform(0, 0.05),
        slow=random.uniform(0, 0.05),
    )


def _with_deaths(random: Random, faults: Faults) -> Faults:
    return replace(
        faults,
        killed=random.uniform(0, random.choice([0.01, 0.04])),
        frozen=random.choice([0.0, 0.05, 0.1]),
        stopped=random.choice([0.0, 0.1]),
        clock_jumps=random.choice([0.0, 0.2]),
        slow=max(faults.slow, random.uniform(0, 0.05)),
        wake_ups=random.choice([0.0, 0.3]),
    )


def _with_strangers(random: Random, faults: Faults) -> Faults:
    return replace(
        faults,
        strangers=random.randint(1, 4),
        mutations=random.choice([0.0, 0.1, 0.3]),
        pollution=random.choice([0.0, 0.5, 1.0]),
    )
