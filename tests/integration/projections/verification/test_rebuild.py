"""A rebuild with concurrent writers and readers, other batches, another rebuild, and a lost connection."""

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


async def test_a_rebuild_leaves_other_batches_unchanged(here: Place) -> None:
    """A rebuild of one batch neither reads nor writes the rows of another."""
    other = history("queued provisioning running completed", evaluation_id="foreign", batch_id="batch-2")
    await here.store(life(1), other)
    await here.alter("UPDATE scorecards SET score = 0.25 WHERE evaluation_id = 'foreign'")
    before = await here.dump()
    assert await here.differences() == []
    await here.rebuild()
    assert await here.dump() == before


async def test_a_scorecard_of_the_wrong_batch_is_moved_alone(here: Place) -> None:
    """The batch it names loses it, the batch of its events gets it back; no evaluation moves."""
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


async def test_only_one_rebuild_runs_at_a_time(here: Place) -> None:
    """The second raises an error, and the lock ends with the connection of the first."""
    await here.store(life(1))
    async with await AsyncConnection.connect(here.url, autocommit=True) as first:
        await first.execute("SELECT pg_advisory_lock(hashtext(%s))", [rebuilding.LOCK])
        with pytest.raises(RebuildInProgress):
            await here.rebuild()
    await here.rebuild()


async def test_events_written_during_a_rebuild_are_part_of_it(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evaluations that change between build and swap are folded again; new ones are not lost."""
    halves = [(life(number)[:3], life(number)[3:]) for number in range(20)]
    await here.store(*(first for first, _ in halves))
    await here.alter("UPDATE evaluations SET owner = 'altered' WHERE evaluation_id = 'evaluation-7'")
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
    """During the swap a reader sees the former tables; a writer continues after it."""
    await here.store(*map(life, range(5)))
    await here.alter("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'evaluation-2'")
    catch_up = rebuilding._Builder._catch_up
    writing: list[asyncio.Task[None]] = []
    seen: list[Row] = []

    async def look_around(builder: Any) -> None:
        await catch_up(builder)
        if not await is_swapping(here):
            return  # the rebuild also catches up before the swap
        seen.extend(await here.ask("SELECT count(*), min(score) FROM scorecards"))
        writing.append(asyncio.create_task(here.store(life(50))))
        await until(lambda: has_waiting_lock(here))

    monkeypatch.setattr(rebuilding._Builder, "_catch_up", look_around)
    await here.rebuild()
    await writing[0]
    assert seen == [(5, 0.5)]
    assert await here.ask("SELECT count(*), min(score) FROM scorecards") == [(6, 1.0)]
    assert await here.differences() == []


async def is_swapping(here: Place) -> bool:
    return bool(await here.ask("SELECT 1 FROM pg_locks WHERE mode = 'ShareRowExclusiveLock' AND granted"))


async def has_waiting_lock(here: Place) -> bool:
    return bool(await here.ask("SELECT 1 FROM pg_locks WHERE NOT granted"))


async def test_an_interrupted_rebuild_changes_nothing_and_the_next_one_succeeds(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection that is lost during the swap rolls its transaction back."""
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


async def test_a_row_altered_during_a_rebuild_is_corrected(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was right when it was compared, and got no event since."""
    await here.store(*map(life, range(4)))
    before, build = await here.dump(), rebuilding._Builder.build

    async def build_while_rows_change(builder: Any, *args: Any, **options: Any) -> None:
        await build(builder, *args, **options)
        await here.alter("UPDATE scorecards SET score = 0.5 WHERE evaluation_id = 'evaluation-1'")
        await here.alter("UPDATE evaluations SET owner = 'x' WHERE evaluation_id = 'evaluation-2'")
        await here.alter("DELETE FROM scorecards WHERE evaluation_id = 'evaluation-3'")

    monkeypatch.setattr(rebuilding._Builder, "build", build_while_rows_change)
    rebuilt = await here.rebuild()
    assert (rebuilt.evaluation_rows, rebuilt.scorecard_rows) == (1, 2)
    assert await here.dump() == before
