"""Randomized trials of budgets: the drawn conditions, the run, and the provider's bill."""

import asyncio
import json
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

from psycopg import AsyncConnection
from redis.asyncio import Redis
from rich.console import Console

from bench.lanes_environment import KEY, MODEL, SimulatedProvider
from scoreline.local.dead_executors import report_dead
from scoreline.local.processes import ProcessManager
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.submission import submit
from taskqueue.budget.redis_budgets import budget_key

INPUT, OUTPUT = 1.0, 5.0
"""Dollars for a million tokens."""
FLEET = "budget"
WORDS = "why is it so that the answer to this question depends on how it is put "
LOOK_EVERY = 0.1
NO_FAULTS = {"overloaded": 0.0, "server_error": 0.0, "reset_before": 0.0, "truncated": 0.0}


@dataclass(frozen=True, slots=True)
class Trial:
    """The drawn conditions of one batch."""

    cases: int
    longest_prompt: int
    latency: float
    latency_p95: float
    output_tokens: int
    max_tokens: int
    judges: int
    timeout: float
    faults: dict[str, float] = field(default_factory=dict)
    kills: tuple[float, ...] = ()
    """Seconds after its start at which an executor is killed."""
    loses_account: float | None = None
    """Seconds after its start at which its account is deleted."""
    max_cost: float | None = None
    token_limit: int | None = None


def draw(dice: Random) -> Trial:
    """Draw a trial; the budget is worth 20 to 300 calls, and mostly less than all cases take."""
    output, judges = dice.choice([20, 60, 150, 300]), dice.choice([0, 0, 1, 2])
    calls, longest = dice.randint(20, 300), dice.randint(20, 900)
    dollars = calls * (output * OUTPUT + longest / 8 * INPUT + 20) / 1e6
    tokens = calls * (output + longest // 8 + 20)
    by_tokens = dice.random() < 0.2
    latency = round(dice.uniform(0.05, 1.0), 2)
    highest = {"overloaded": 0.02, "server_error": 0.05, "reset_before": 0.03, "truncated": 0.02}
    faults = {name: round(dice.uniform(0, most), 3) for name, most in highest.items()}
    return Trial(
        cases=max(10, int(calls / (1 + judges) * dice.choice([0.5, 2, 3]))),
        longest_prompt=longest,
        latency=latency,
        latency_p95=round(min(2.0, latency * dice.uniform(1.2, 3)), 2),
        output_tokens=output,
        max_tokens=dice.choice([512, 1_024, 4_096]),
        judges=judges,
        timeout=dice.choice([2.0, 30.0, 30.0]),
        faults=faults if dice.random() < 0.6 else NO_FAULTS,
        kills=tuple(round(dice.uniform(0.5, 4), 1) for _ in range(dice.choice([0, 0, 1, 2]))),
        loses_account=round(dice.uniform(0.5, 3), 1) if dice.random() < 0.15 else None,
        max_cost=None if by_tokens else round(dollars, 6),
        token_limit=tokens if by_tokens else None,
    )


@dataclass(frozen=True, slots=True)
class TrialResult:
    """The result of a trial."""

    trial: Trial
    status: str
    overdraft: float
    """The provider's bill beyond the budget, as a share of it; negative if it billed less."""
    recorded_overdraft: float
    """The same for the recorded spend."""
    used: float
    """The share of the budget that was billed."""
    seconds: float

    def listed(self) -> dict[str, Any]:
        """Write it down."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class BudgetBench:
    """The servers and processes that trials run on."""

    servers: Servers
    manager: ProcessManager
    root: Path


async def run(fleet: BudgetBench, sim: SimulatedProvider, trial: Trial, dice: Random) -> TrialResult:
    """Run one batch to its pause or end, with the drawn faults."""
    loop = asyncio.get_running_loop()
    settings = {"latency": trial.latency, "latency_p95": trial.latency_p95, **trial.faults}
    await sim.change(output_tokens=trial.output_tokens, seed=dice.randrange(10**6), **settings)
    before = await sim.stats()
    batch_id = await _submitted(fleet, sim, trial, dice)
    started = loop.time()
    errands = [asyncio.create_task(_kill_later(fleet, after, dice)) for after in trial.kills]
    if trial.loses_account is not None:
        errands.append(asyncio.create_task(_lose_later(fleet, batch_id, trial.loses_account)))
    status, spent_usd, spent_tokens = await _over(fleet, batch_id)
    for errand in errands:
        errand.cancel()
    await asyncio.gather(*errands, return_exceptions=True)
    seconds = loop.time() - started
    while (after := await sim.stats())["in_flight"]:  # noqa: ASYNC110 - another process
        await asyncio.sleep(LOOK_EVERY)
    tokens = [int(after[name]) - int(before[name]) for name in ("input_tokens", "output_tokens")]
    if trial.max_cost is None:
        limit, billed, spent = float(trial.token_limit or 1), float(sum(tokens)), float(spent_tokens)
    else:
        billed = (tokens[0] * INPUT + tokens[1] * OUTPUT) / 1e6
        limit, spent = trial.max_cost, float(spent_usd)
    used = billed / limit
    return TrialResult(
        trial, status, round(used - 1, 4), round(spent / limit - 1, 4), round(used, 4), round(seconds, 1)
    )


async def _submitted(fleet: BudgetBench, sim: SimulatedProvider, trial: Trial, dice: Random) -> str:
    dataset = fleet.root / f"cases-{dice.randrange(10**9)}.jsonl"
    text = WORDS * 20
    rows = ({"input": f"{n} {text[: dice.randint(1, trial.longest_prompt)]}"} for n in range(trial.cases))
    dataset.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    prices = {"input": INPUT, "output": OUTPUT}
    called = {"base_url": sim.url, "key_variable": KEY, "account": dataset.stem, "prices": prices}
    judge = {"type": "llm_judge", "model": f"anthropic/{MODEL}", "rubric": "Is {output} polite?", **called}
    flags: dict[str, Any] = {
        "dataset": str(dataset),
        "targets": [
            {"type": "anthropic", "model": MODEL, "parameters": {"max_tokens": trial.max_tokens}, **called}
        ],
        "evaluators": [{**judge, "name": f"judge-{n}"} for n in range(trial.judges)],
        "timeout": trial.timeout,
        "retries": 5,
        "fail_fast_after": 0,
        "max_cost": None if trial.max_cost is None else f"{trial.max_cost:.6f}",
        "max_tokens": trial.token_limit,
    }
    plan = make_plan(None, {k: v for k, v in flags.items() if v is not None}, folder=fleet.root)
    batch_id, _ = await submit(plan, fleet.servers, Settings(), Console(stderr=True, quiet=True))
    return batch_id


async def _kill_later(fleet: BudgetBench, after: float, dice: Random) -> None:
    await asyncio.sleep(after)
    executors = [child for child in fleet.manager.children if child.name.startswith("executor")]
    process = dice.choice(executors).process
    if process and process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
        await process.wait()
        await report_dead(fleet.servers.redis_url, fleet=FLEET, is_dead=process.pid.__eq__)


async def _lose_later(fleet: BudgetBench, batch_id: str, after: float) -> None:
    await asyncio.sleep(after)
    redis = Redis.from_url(fleet.servers.redis_url)
    try:
        await redis.delete(budget_key(batch_id))
    finally:
        await redis.aclose()


async def _over(fleet: BudgetBench, batch_id: str) -> tuple[str, Decimal, int]:
    """Wait until a batch is paused or over."""
    conn = await AsyncConnection.connect(fleet.servers.postgres_url, autocommit=True)
    async with conn:
        while True:
            cursor = await conn.execute(_STANDING, [batch_id])
            row: Sequence[Any] | None = await cursor.fetchone()
            if row and (row[0] == "paused" or row[1]):
                return ("completed" if row[1] else "paused"), row[2], int(row[3])
            await asyncio.sleep(LOOK_EVERY)


_STANDING = b"""
SELECT b.state, b.finished_at IS NOT NULL, coalesce(s.cost_usd, 0) + b.unrecorded_usd,
       coalesce(s.tokens, 0) + b.unrecorded_tokens
FROM batches b LEFT JOIN batch_status s USING (batch_id) WHERE b.batch_id = %s
"""
