"""A rebuild among others: batches it is not about, writers, readers, another rebuild, and its own death."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg import AsyncConnection

from projections.verification import rebuild as rebuilding
from projections.verification.rebuild import RebuildInProgress
from tests.builders import BATCH, history
from tests.integration.place import Place, Row, life, place
from tests.waiting import until


@pytest.fixture
async def here(postgres_url: str) -> AsyncIterator[Place]:
    async with place(postgres_url) as made:
        yield made


async def test_other_batches_are_left_alone(here: Place) -> None:
    """A rebuild of one batch neither reads nor writes another's rows."""
    other = history("queued provisioning running completed", evaluation_id="foreign", batch_id="batch-2")
    await here.store(life(1), other)
    await here.alter("UPDATE scorecards SET score = 0.25 WHERE evaluation_id = 'foreign'")
    before = await here.dump()
    assert await here.differences() == []
    await here.rebuild()
    assert await here.dump() == before


async def test_a_scorecard_that_names_another_batch_moves_nothing_but_itself(here: Place) -> None:
    """The batch it names loses it, the batch of its events gets it back; no evaluation changes hands."""
    other = history("queued provisioning running completed", evaluation_id="foreign", batch_id="batch-2")
    await here.store(life(1), other)
    before = await here.dump()
    await here.alter("UPDATE scorecards SET batch_id = %s WHERE evaluation_id = 'foreign'", BATCH)
    assert [found.where for found in await here.differences()] == ["scorecards foreign"]
    assert [found.where for found in await here.differences("batch-2")] == ["scorecards foreign batch_id"]
    rebuilt = await here.rebuild()
    assert (rebuilt.evaluations, rebuilt.evaluation_rows, rebuilt.scorecard_rows) == (1, 0, 1)
    await here.rebuild("batch-2")
    assert await here.dump() == before


async def test_only_one_rebuild_at_a_time(here: Place) -> None:
    """The second says so, and the lock goes with the first one's connection."""
    await here.store(life(1))
    async with await AsyncConnection.connect(here.url, autocommit=True) as first:
        await first.execute("SELECT pg_advisory_lock(hashtext(%s))", [rebuilding.LOCK])
        with pytest.raises(RebuildInProgress):
            await here.rebuild()
    await here.rebuild()


async def test_what_is_written_during_a_rebuild_is_part_of_it(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations that move between build and swap are folded again; new ones are not lost."""
    halves = [(life(number)[:3], life(number)[3:]) for number in range(20)]
    await here.store(*(first for first, _ in halves))
    await here.alter("UPDATE evaluations SET owner = 'nobody' WHERE evaluation_id = 'evaluation-7'")
    build, catch_up = rebuilding._Builder.build, rebuilding._Builder._catch_up

    async def build_while_others_write(builder: Any, on_page: Any, *, processes: int) -> None:
        await build(builder, on_page, processes=processes)
        await here.store(*(rest for _, rest in halves[:10]), life(99))

    async def catch_up_while_others_write(builder: Any) -> None:
        await catch_up(builder)
        if not await is_swapping(here):
            await here.store(halves[10][1], life(98))

    monkeypatch.setattr(rebuilding._Builder, "build", build_while_others_write)
    monkeypatch.setattr(rebuilding._Builder, "_catch_up", catch_up_while_others_write)
    rebuilt = await here.rebuild()
    assert rebuilt.folded_again == 11 + 2
    assert rebuilt.evaluation_rows == 1
    assert await here.differences() == []
    assert await here.ask("SELECT completed, pending FROM batch_status") == [(13, 9)]


async def test_writers_wait_for_the_swap_and_readers_do_not(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the midst of a swap a reader sees whole tables as they were; a writer goes on afterwards."""
    await here.store(*map(life, range(5)))
    await here.alter("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'evaluation-2'")
    catch_up = rebuilding._Builder._catch_up
    writing: list[asyncio.Task[None]] = []
    seen: list[Row] = []

    async def look_around(builder: Any) -> None:
        await catch_up(builder)
        if not await is_swapping(here):
            return  # it catches up before, too
        seen.extend(await here.ask("SELECT count(*), min(score) FROM scorecards"))
        writing.append(asyncio.create_task(here.store(life(50))))
        await until(lambda: somebody_waits(here))

    monkeypatch.setattr(rebuilding._Builder, "_catch_up", look_around)
    await here.rebuild()
    await writing[0]
    assert seen == [(5, 0.5)]
    assert await here.ask("SELECT count(*), min(score) FROM scorecards") == [(6, 1.0)]
    assert await here.differences() == []


async def is_swapping(here: Place) -> bool:
    return bool(await here.ask("SELECT 1 FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND granted"))


async def somebody_waits(here: Place) -> bool:
    return bool(await here.ask("SELECT 1 FROM pg_locks WHERE NOT granted"))


async def test_rebuild_cut_short_leaves_the_tables_and_the_next_one_succeeds(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that dies in mid-swap takes its transaction with it."""
    await here.store(*map(life, range(5)))
    await here.alter("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'evaluation-2'")
    before = await here.dump()
    with monkeypatch.context() as patched:

        async def die(builder: Any) -> None:
            if await is_swapping(here):
                await builder._conn.close()

        patched.setattr(rebuilding._Builder, "_catch_up", die)
        with pytest.raises(Exception, match="closed"):
            await here.rebuild()
    assert await here.dump() == before
    await here.rebuild()
    assert await here.differences() == []
    assert await here.ask("SELECT count(*) FROM pg_namespace WHERE nspname = 'scoreline_rebuild'") == [(0,)]
