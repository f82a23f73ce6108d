"""What a run is about: batches, their limits, when each begins and is over, and how many executors."""

from dataclasses import dataclass
from random import Random

from domain.batch_spec import Limits

NONE = Limits()


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """One batch of a run."""

    batch_id: str
    limits: Limits
    overall: int | None
    begins: float
    """Seconds after the run has begun."""
    over: float
    tasks: int
    is_judged: bool
    is_paused: bool
    """Whether it is paused at the end, rather than removed."""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """One run."""

    seed: int
    batches: tuple[BatchPlan, ...]
    executors: int
    is_scoped: bool
    """Whether each batch has executors of its own, as local runs have, which know of no other batch."""
    slots: int
    latency: tuple[float, float]
    tokens: tuple[int, int]


def draw_plan(seed: int) -> RunPlan:
    """Draw two to four batches with any mix of limits, at least one of them limited."""
    random = Random(seed)
    number = random.randint(2, 4)
    plans = [_batch(random, f"b{index}") for index in range(number)]
    if all(each.limits == NONE and each.overall is None for each in plans):
        return draw_plan(seed + 1_000_003)
    tokens = random.choice([(200, 200), (100, 300), (20, 900)])
    latency = random.choice([(0.05, 0.1), (0.3, 0.8), (1.0, 6.0)])
    return RunPlan(
        seed,
        tuple(plans),
        executors=random.randint(1, 4),
        is_scoped=random.random() < 0.7,
        slots=random.choice([4, 16, 60]),
        latency=latency,
        tokens=tokens,
    )


def _batch(random: Random, batch_id: str) -> BatchPlan:
    begins = random.choice([0.0, random.uniform(0.0, 30.0)])
    return BatchPlan(
        batch_id,
        draw_limits(random),
        random.choice([None, None, None, 1, 3, 10]),
        begins,
        begins + random.uniform(10.0, 50.0),
        random.choice([20, 200, 1_000]),
        is_judged=random.random() < 0.25,
        is_paused=random.random() < 0.5,
    )


def draw_limits(random: Random) -> Limits:
    """Draw none, one or two kinds of limits."""
    kinds = random.sample(["rpm", "tpm", "max_concurrency", "delay"], random.choice([0, 1, 1, 2]))
    return Limits(
        rpm=random.choice([30.0, 300.0, 600.0, 3_000.0]) if "rpm" in kinds else None,
        tpm=random.choice([6_000.0, 60_000.0, 600_000.0]) if "tpm" in kinds else None,
        max_concurrency=random.choice([1, 2, 5, 20]) if "max_concurrency" in kinds else None,
        delay=random.choice([0.05, 0.5, 2.0]) if "delay" in kinds else 0.0,
    )
