"""Coordinators, executors and servers that die under a batch which a real fleet works on."""

from collections.abc import Awaitable, Callable

from tests.chaos.fleet import EXECUTORS, Fleet, fleet_of
from tests.chaos.fleet_checker import is_over
from tests.chaos.fleet_members import AT_THE_END, ONCE, POINTS
from tests.chaos.run import Run
from tests.chaos.submitting import AFTER_COMMIT, BATCH_EXISTS, BEFORE_COMMIT, READING
from tests.waiting import until

KILLED = -9
LATEST_CALL = 3
OF_A_BATCH = (
    "SELECT count(*) FROM batches WHERE batch_id = %(batch)s",
    "SELECT count(*) FROM evaluations WHERE batch_id = %(batch)s",
    "SELECT count(*) FROM events WHERE evaluation_id = ANY(%(evaluations)s)",
    "SELECT count(*) FROM batch_progress WHERE batch_id = %(batch)s",
    "SELECT count(*) FROM batch_events WHERE batch_id = %(batch)s",
    "SELECT count(*) FROM serial_links WHERE batch_id = %(batch)s",
)
TAKEN_AWAY = """
SELECT count(*) FROM events
WHERE evaluation_id = ANY(%s) AND type = 'queued' AND event->'data'->>'reason' = 'lost'
"""


async def coordinator_killed_in_mid_submit(run: Run) -> None:
    """A submission is killed: before the commit nothing is there; the same again succeeds."""
    fleet = Fleet(run)
    await fleet.start()
    for point in run.rng.sample([READING, *BEFORE_COMMIT], 2):
        code = await fleet.submit(dies=point, at_call=_call_of(run, fleet, point))
        if code != KILLED or await _rows_of(run):
            run.complaints.append(f"exit code {code} {point}, and {await _rows_of(run)} rows of the batch")
    last = run.rng.choice([None, *AFTER_COMMIT])
    code, again = await fleet.submit(dies=last), await fleet.submit()
    if (code, again) != (KILLED if last else 0, BATCH_EXISTS):
        run.complaints.append(f"handed in: exit code {code}, and the same again: {again}")
    await fleet.finish()


def _call_of(run: Run, fleet: Fleet, point: str) -> int:
    latest = {READING: len(fleet.submission.evaluations), "a chunk is inserted": 7}.get(point, 1)
    return run.rng.randint(1, latest)


async def _rows_of(run: Run) -> int:
    values = {"batch": run.batch_id, "evaluations": sorted(run.expected.evaluations)}
    async with run.world.postgres() as conn:
        counts = [await (await conn.execute(one, values)).fetchone() for one in OF_A_BATCH]
    return sum(count[0] for count in counts if count)


async def coordinator_killed_in_mid_batch(run: Run) -> None:
    """Coordinators are killed at named points and at any moment: another goes on, nothing is done twice."""
    fleet = Fleet(run)
    point = run.rng.choice([*POINTS, *AT_THE_END])
    call = 1 if point in ONCE or point in AT_THE_END else run.rng.randint(1, LATEST_CALL)
    await fleet.start(dies=point, at_call=call)
    await fleet.submit()
    await until(lambda: run.noted()["coordinator killed"] > 0, 60)
    if point in POINTS:
        await fleet.moment(0.2, 0.8)
        await fleet.kill_leader()
    await fleet.finish()


async def executors_killed(run: Run) -> None:
    """Executors are killed with active tasks: they run again, and no answer on record is bought twice."""
    fleet = await fleet_of(run)
    for turn, number in enumerate(run.rng.sample(range(EXECUTORS), EXECUTORS)):
        await fleet.moment(0.05 + 0.3 * turn, 0.3 + 0.3 * turn)
        await fleet.kill_executor(number)
    await fleet.finish()
    if not run.notes["owner lost"]:
        run.complaints.append("executors were killed, and nothing began again")


async def executor_frozen(run: Run) -> None:
    """An executor sleeps for longer than a heartbeat lasts: others do its work; its events are stale."""
    fleet = await fleet_of(run)
    await fleet.moment(0.05, 0.5)
    await _freeze_an_executor(fleet)
    await fleet.finish()
    if not run.notes["owner lost"]:
        run.complaints.append("an executor slept, and nothing was taken away from it")


async def _freeze_an_executor(fleet: Fleet) -> None:
    before = await _taken_away(fleet.run)

    async def is_suspected() -> bool:
        return await _taken_away(fleet.run) > before or await is_over(fleet.run)

    await fleet.freeze_executor(fleet.run.rng.randrange(EXECUTORS), is_suspected)
    await fleet.run.pause(0.0, 0.3)


async def _taken_away(run: Run) -> int:
    async with run.world.postgres() as conn:
        cursor = await conn.execute(TAKEN_AWAY, [sorted(run.expected.evaluations)])
        return int((await cursor.fetchone() or [0])[0])


async def redis_killed_under_a_fleet(run: Run) -> None:
    """Redis is killed and started again from its file: everybody waits, and goes on."""
    fleet = await fleet_of(run)
    await fleet.moment()
    await run.world.kill_redis()
    await fleet.finish()


async def redis_lost_under_a_fleet(run: Run) -> None:
    """Redis forgets all, or the last of it: owners append their attempts again, the rest is republished."""
    fleet = await fleet_of(run)
    await fleet.moment()
    await run.rng.choice(FORGETTING)(run)
    await fleet.finish()


async def _flush(run: Run) -> None:
    await run.world.redis("FLUSHALL")


async def _lose_whole(run: Run) -> None:
    await run.world.lose_redis()


async def _lose_the_end(run: Run) -> None:
    await run.world.lose_redis(run.rng)


FORGETTING: tuple[Callable[[Run], Awaitable[None]], ...] = (_flush, _lose_whole, _lose_the_end)


async def postgres_killed_under_a_fleet(run: Run) -> None:
    """Postgres is killed whole: executors work on, and what they did meanwhile is stored."""
    fleet = await fleet_of(run)
    await fleet.moment()
    await run.world.kill_postgres()
    await fleet.finish()


async def fleet_everything_in_turn(run: Run) -> None:
    """Everybody and everything dies in turn, in any order: every evaluation ends, and none twice."""
    fleet = await fleet_of(run)
    for number, blow in enumerate(run.rng.sample(BLOWS, len(BLOWS))):
        await fleet.progress(0.02 + 0.12 * number)
        await blow(fleet)
    # What only Redis and one executor knew is gone when both are: no guarantee covers that.
    await fleet.finish(acknowledged=False)


async def _kill_an_executor(fleet: Fleet) -> None:
    await fleet.kill_executor(fleet.run.rng.randrange(EXECUTORS))


async def _kill_the_leader(fleet: Fleet) -> None:
    await fleet.kill_leader()


async def _kill_a_storage_worker(fleet: Fleet) -> None:
    await fleet.run.world.workers.kill()


async def _kill_redis(fleet: Fleet) -> None:
    await fleet.run.world.kill_redis()


async def _lose_redis(fleet: Fleet) -> None:
    await fleet.run.rng.choice(FORGETTING)(fleet.run)


async def _kill_postgres(fleet: Fleet) -> None:
    await fleet.run.world.kill_postgres()


BLOWS: tuple[Callable[[Fleet], Awaitable[None]], ...] = (
    _kill_an_executor,
    _freeze_an_executor,
    _kill_the_leader,
    _kill_a_storage_worker,
    _kill_redis,
    _lose_redis,
    _kill_postgres,
)
