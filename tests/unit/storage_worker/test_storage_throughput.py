"""Storage of very many endings, and through an outage of the database."""

from collections.abc import Sequence

from projections.database.errors import DatabaseUnavailable
from projections.folds.change import Change
from projections.store.contract import CommitResult
from projections.store.memory import MemoryStore
from storage_worker.storage import Storage
from tests.builders import history
from tests.storage_world import GAP_POLICY, World
from tests.unit.executor.harness import ANSWER as REPLY
from tests.unit.executor.harness import Harness, virtually
from tests.waiting import until


async def test_a_thousand_endings_take_one_transaction():
    """A thousand evaluations that end at once take one read and one transaction, not thousands."""
    world, commits = World(), []

    class Counting(MemoryStore):
        async def commit(self, changes: Sequence[Change]) -> CommitResult:
            commits.append(len(changes))
            return await super().commit(changes)

    tables = Counting(lambda: 0.0)
    ids = [f"e{number}" for number in range(1_000)]
    for key in ids:
        world.xadd(*history("queued provisioning running responded completed", evaluation_id=key))
    storage = world.storage(tables=tables)
    await storage.process(ids)
    assert storage.counts.events["applied"] == 5_000
    assert commits == [1_000]


@virtually
async def test_an_answer_during_an_outage_of_postgres_is_stored_once():
    """An answer that arrives during an outage of Postgres waits in the log; it is paid and stored once."""
    harness, fates = Harness(), ["unreached", "reply lost"]

    class Away(MemoryStore):
        async def commit(self, changes: Sequence[Change]) -> CommitResult:
            fate = fates.pop(0) if fates else ""
            committed = None if fate == "unreached" else await super().commit(changes)
            if fate or committed is None:
                raise DatabaseUnavailable(fate)
            return committed

    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await until(harness.is_drained)
    tables = Away(lambda: 0.0)
    await Storage(harness.log, tables, GAP_POLICY).process(["e-1"])
    assert (fates, len(harness.target.asked)) == ([], 1)
    assert len(tables.events) == 5
    [progress] = tables.progress.values()
    assert (progress.completed, float(progress.cost_usd)) == (1, REPLY.cost_usd)
