"""Executors in processes of their own: one that comes back from the dead, and one that does not."""

import signal
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import replace

from eventlog import payloads as p
from tests.chaos.children import Child
from tests.chaos.control import Coordinator
from tests.chaos.executor import Job, execute, work
from tests.chaos.run import Run
from tests.chaos.witness import WitnessedLog, tokens_in
from tests.waiting import until

EVALUATIONS = 40


async def zombie_executor(run: Run) -> None:
    """An executor sleeps past suspicion and wakes: the next attempt owns its work; it is fenced."""
    await _strike(run, signal.SIGSTOP)


async def executor_killed(run: Run) -> None:
    """An executor is killed with events unsent: the next attempt takes over, and pays no answer twice."""
    await _strike(run, signal.SIGKILL)


async def _strike(run: Run, blow: signal.Signals) -> None:
    log = WitnessedLog.seen_by(run.witness, run.world.servers.redis_url)
    async with aclosing(log):
        coordinator, job = Coordinator(run, log), _job(run)
        run.expected.evaluations = set(job.evaluation_ids)
        await coordinator.open(job.evaluation_ids, 1, p.OpeningReason.SUBMITTED)
        child = Child(work, job, log=run.world.layout.home / "executors.log")
        run.stack.push_async_callback(child.kill)  # whatever happens: a stopped process heeds nothing else
        struck_after = run.rng.randint(5, 3 * EVALUATIONS)
        await until(lambda: _written(job) > struck_after, 60)
        child.signal(blow)
        await until(lambda: child.is_still, 60)
        lost = await coordinator.take_away(job.evaluation_ids, 1)
        await _finish(run, job, lost, child)
    run.witness.absorb(job.journal)
    least, most = tokens_in(run.witness.acknowledged.values()), tokens_in(run.witness.sent.values())
    # A zombie receives every answer; whether the requests of the dead arrived is unknown.
    run.expected.tokens = (least, least if blow is signal.SIGSTOP else most)


def _job(run: Run) -> Job:
    keys = tuple(f"{run.batch_id}-{number:03}" for number in range(EVALUATIONS))
    return Job(
        run.world.servers.redis_url,
        run.batch_id,
        keys,
        plainly=frozenset(key for key in keys if run.rng.random() < 0.5),
        journal=run.world.layout.home / f"{run.batch_id}.journal",
        seed=run.rng.randrange(10**6),
    )


def _written(job: Job) -> int:
    return job.journal.read_bytes().count(b"\n") if job.journal.exists() else 0


async def _finish(run: Run, job: Job, lost: Sequence[str], child: Child) -> None:
    """Let a second executor do what was taken away, and the first one wake up at some point."""
    heir = replace(job, evaluation_ids=tuple(lost), plainly=frozenset(), executor="executor-2", attempt=2)
    middle = run.rng.randint(0, len(lost))
    await execute(replace(heir, evaluation_ids=heir.evaluation_ids[:middle]), run.witness)
    child.signal(signal.SIGCONT)
    await execute(replace(heir, evaluation_ids=heir.evaluation_ids[middle:]), run.witness)
    await child.ended()
    await run.until_ended()
