"""Answers from Anthropic's Message Batches, over HTTP, with real servers on our side."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from coordinator.coordinator import Coordinator
from coordinator.provider_batches.settings import ProviderBatchSettings
from coordinator.submission import NewEvaluation
from domain.batch_spec import BatchFallback, BatchSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.keys import epoch_key, events_key, shard_of
from eventlog.log import EXPIRY_SECONDS
from projections.queries.provider_batches import provider_backlog, provider_batches_of
from scoreline.provider_sim.simulator import Simulator
from scoreline.reports.provider_batches import AtProviders, provider_document, provider_lines
from taskqueue.queue_layout import queue_name
from tests.extras import require
from tests.integration.coordinator.coordinating import CONSUMER, House, house
from tests.provider import provider
from tests.waiting import until

require("anthropic")

B = "nightly"
KEY = "sk-ant-a-key-that-must-stay-secret"
NO_TIME = timedelta(0)
SETTINGS = ProviderBatchSettings(
    page=3, first_poll=NO_TIME, longest_poll=NO_TIME, margin=NO_TIME, submit_timeout=timedelta(seconds=20)
)
CLAIMED = "SELECT claimed_at FROM provider_batches"
PRICES: dict[str, Any] = {"input": 10.0, "output": 100.0}


@pytest.fixture
async def sim(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Simulator]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    async with provider(mode="echo", batch_seconds=1_000) as lent:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", lent.base_url)
        yield lent


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url, provider=SETTINGS) as lent:
        yield lent


def spec(fallback: BatchFallback | None = BatchFallback.RESUBMIT, *, is_metered: bool = False) -> BatchSpec:
    options: dict[str, Any] = {"model": "claude-sonnet-4-5", "prices": PRICES}
    claude = TargetSpec("anthropic", "anthropic/claude", options, is_metered=is_metered)
    return BatchSpec("a batch", (claude,), retries=2, batch_api=fallback)


async def run_cycle(here: House, coordinator: Coordinator | None = None, *, times: int = 1) -> None:
    """Run a cycle of a coordinator and of its provider batches."""
    coordinator = coordinator or here.coordinator
    for _ in range(times):
        await coordinator.run_cycle()
        assert coordinator.provider_batches
        await coordinator.provider_batches.run_cycle()


async def until_states(here: House, *wanted: str) -> None:
    """Run cycles until the evaluations have these states."""

    async def stand() -> bool:
        await run_cycle(here)
        return await here.states(B) == list(wanted)

    await until(stand)


async def looked_at(here: House) -> AtProviders:
    """Run a command of an operator."""
    return AtProviders(tuple(await provider_batches_of(here.conn, B)), await provider_backlog(here.conn, B))


async def test_answers_are_collected_scored_and_paid_at_half_the_price(here: House, sim: Simulator) -> None:
    """This covers the first request to the last scorecard; the tables equal the log at the end."""
    await here.submit(B, 8, spec=spec())
    await run_cycle(here, times=2)
    assert sim.stats.batches_created == 1
    assert await here.takes(B) == []
    assert (await looked_at(here)).backlog == (8, 0)
    sim.finish_batches()
    await until_states(here, *["2 queued"] * 8)
    opening = await here.opening(B, 3, 2)
    assert opening.answer
    assert (opening.reason, opening.answer.output) == ("scoring", "3")
    usage = opening.answer.usage
    whole = (usage.input_tokens * 10 + usage.output_tokens * 100) / 1e6
    assert opening.answer.cost_usd == pytest.approx(whole / 2)
    assert await here.work(B) == list(range(1, 9))
    await run_cycle(here, times=2)
    assert await here.batch(B) == ("completed", True)
    assert (sim.stats.batches_created, sim.stats.batch_requests) == (1, 8)


async def test_a_submission_with_a_lost_response_is_found_by_listing(here: House, sim: Simulator) -> None:
    """Another coordinator finds it, too: it waits, reads the results, and adopts the provider batch."""
    sim.change(batch_unheard=1.0)
    await here.submit(B, 4, spec=spec())
    await run_cycle(here, times=2)
    sim.change(batch_unheard=0.0)
    assert sim.stats.batches_created == 1
    other = here.another(provider=SETTINGS)
    await run_cycle(here, other, times=3)
    [queue] = provider_lines(await looked_at(here), utc_now())
    assert "may be it" in queue
    sim.finish_batches()
    await until_states(here, *["2 queued"] * 4)
    assert (sim.stats.batches_created, sim.stats.batch_requests) == (1, 4)
    assert await here.work(B) == [1, 2, 3, 4]


async def test_a_submission_answered_with_500_is_repeated_once_when_the_list_lacks_it(
    redis_url: str, postgres_url: str, sim: Simulator
) -> None:
    """The time-out of the submission, a day, need not pass: the provider has ended the request."""
    settings = replace(SETTINGS, submit_timeout=timedelta(days=1), ended_margin=timedelta(seconds=1))
    sim.change(batch_server_error=1.0)
    async with house(redis_url, postgres_url, provider=settings) as here:
        await here.submit(B, 4, spec=spec())
        await run_cycle(here, times=2)
        assert sim.stats.of("batches.create", "500") == 1
        sim.change(batch_server_error=0.0)
        [(first,)] = await (await here.conn.execute(CLAIMED)).fetchall()

        async def is_repeated() -> bool:
            await run_cycle(here)
            return sim.stats.batches_created == 1

        await until(is_repeated)
        sim.finish_batches()
        await until_states(here, *["2 queued"] * 4)
        [(repeated,)] = await (await here.conn.execute(CLAIMED)).fetchall()
        assert repeated - first >= timedelta(seconds=1)
    assert (sim.stats.batches_created, sim.stats.batch_requests) == (1, 4)


async def test_requests_without_an_answer_may_go_to_executors(here: House, sim: Simulator) -> None:
    """This needs --batch-fallback sync; answered requests are scored."""
    sim.change(batch_expired=1.0)
    await here.submit(B, 3, spec=spec(BatchFallback.SYNC))
    await run_cycle(here, times=2)
    sim.finish_batches()
    await until_states(here, *["2 queued"] * 3)
    assert (await here.opening(B, 1, 2)).answer is None
    assert await here.work(B) == [1, 2, 3]
    await run_cycle(here, times=2)
    assert await here.batch(B) == ("completed", True)


async def test_requests_that_fail_are_charged_and_end_as_dead_letters(here: House, sim: Simulator) -> None:
    """There is one provider batch more than there are retries."""
    sim.change(batch_errored=1.0, batch_seconds=0)
    await here.submit(B, 2, spec=spec())
    await until_states(here, "3 failed", "3 failed")
    assert sim.stats.batches_created == 3
    assert (await here.error(B, 1))["kind"] == "api"


async def test_cancel_is_passed_on_to_the_provider(here: House, sim: Simulator) -> None:
    """Answers that exist already are recorded as late, and paid for."""
    await here.submit(B, 3, spec=spec())
    await run_cycle(here, times=2)
    sim.finish_batches()
    await here.operator.cancel(B)
    assert await here.states(B) == ["2 cancelled"] * 3
    await run_cycle(here, times=3)
    found = await here.ask("SELECT verdict, count(*) FROM events WHERE type = 'responded' GROUP BY 1")
    assert found == [("late", 3)]
    [(spent,)] = await here.ask("SELECT sum(cost_usd) FROM batch_progress")
    assert spent > 0
    [provider_batch] = (await looked_at(here)).provider_batches
    assert provider_batch.state == "cancelled"


async def test_a_missing_or_refused_key_pauses_the_batch_and_is_not_shown(
    here: House, sim: Simulator, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason is in the batch's status; no provider batch is left, and the key is stored nowhere."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    await here.submit(B, 2, spec=spec())
    await run_cycle(here, times=2)
    batch = await here.ledger.batch(B)
    assert batch
    assert (batch.state, "ANTHROPIC_API_KEY is not set" in batch.reason) == ("paused", True)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    sim.change(keys=["another"])
    await here.operator.resume(B)
    await run_cycle(here, times=2)
    batch = await here.ledger.batch(B)
    assert batch
    assert (batch.state, "refused" in batch.reason) == ("paused", True)
    assert KEY not in batch.reason + caplog.text
    assert not (await looked_at(here)).at_work
    sim.change(keys=[])
    await here.operator.resume(B)
    await run_cycle(here, times=2)
    sim.finish_batches()
    await until_states(here, "2 queued", "2 queued")
    assert sim.stats.batches_created == 1


async def test_a_large_batch_is_split_into_provider_batches_and_read_in_groups(
    here: House, sim: Simulator
) -> None:
    """Each provider batch is within its size, whatever the prompts hold."""
    small = replace(SETTINGS, max_requests=7, max_bytes=20_000, page=5)
    coordinator = here.another(provider=small)
    made = [p.Case(id=f"case-{n}", input=f'№{n} "\\\n' + "x" * 2_000) for n in range(20)]
    await here.submit_these(B, [NewEvaluation(case) for case in made], spec=spec())
    await run_cycle(here, coordinator, times=6)
    provider_batches = (await looked_at(here)).provider_batches
    assert sum(provider_batch.size for provider_batch in provider_batches) == 20
    assert sim.stats.batches_created == len(provider_batches) >= 3
    sim.finish_batches()
    await until_states(here, *["2 queued"] * 20)
    answer = (await here.opening(B, 1, 2)).answer
    assert answer
    assert answer.output == made[0].input
    document = provider_document(await looked_at(here))
    assert sum(each["succeeded"] for each in document["batches"]) == 20


async def test_unclaimed_evaluations_are_moved_to_provider_batches(here: House, sim: Simulator) -> None:
    """Two are claimed and stay with executors; the rest is submitted once, at no extra charge."""
    await here.submit(B, 8, spec=spec(None, is_metered=True))
    await run_cycle(here, times=2)
    queue = queue_name(B, "target-0")
    taken = await here.queues.tasks.consume(CONSUMER, {queue: 2}, block=NO_TIME)
    begun = sorted(int(each.task.evaluation_id.rpartition(".")[2]) for each in taken)
    for number in begun:
        await here.claim(B, number)
    moved = await here.operator.ask_in_batches(B, BatchFallback.RESUBMIT)
    assert (moved.withdrawn, moved.to_executors) == (6, True)
    rest = [number for number in range(1, 9) if number not in begun]

    async def are_asked() -> bool:
        await here.store(B)
        await run_cycle(here)
        return sim.stats.batch_requests == 6

    await until(are_asked)
    state = await here.states(B)
    assert [state[number - 1] for number in rest] == ["2 queued"] * 6
    assert [state[number - 1] for number in begun] == ["1 provisioning"] * 2
    keys = [evaluation_id(B, number) for number in rest]
    lives = [await here.log.redis.ttl(events_key(shard_of(key, here.log.shards), key)) for key in keys]
    assert all(0 < life <= EXPIRY_SECONDS for life in lives)
    sim.finish_batches()
    await until_states(here, *("1 provisioning" if n in begun else "3 queued" for n in range(1, 9)))
    opening = await here.opening(B, rest[0], 3)
    assert (opening.reason, opening.retries) == ("scoring", 2)
    assert (sim.stats.batches_created, sim.stats.batch_requests) == (1, 6)


async def test_claimed_evaluations_are_not_withdrawn(here: House, sim: Simulator) -> None:
    """This holds although the task is still queued: as a duplicate, or not yet acknowledged."""
    await here.submit(B, 2, spec=spec(None, is_metered=True))
    await run_cycle(here)
    for number in (1, 2):
        await here.claim(B, number)
    assert (await here.operator.ask_in_batches(B, BatchFallback.RESUBMIT)).withdrawn == 0
    await here.store(B)
    assert await here.states(B) == ["1 provisioning"] * 2
    assert sim.stats.batches_created == 0


async def test_evaluations_published_before_a_restart_of_redis_are_moved_too(
    here: House, sim: Simulator
) -> None:
    """Their attempts can be neither claimed nor withdrawn, so the coordinator opens the next ones."""
    await here.submit(B, 4, spec=spec(None, is_metered=True))
    await run_cycle(here, times=2)
    for shard in range(here.log.shards):
        await here.log.redis.delete(epoch_key(shard))
    assert (await here.operator.ask_in_batches(B, BatchFallback.RESUBMIT)).withdrawn == 4
    [queue] = await here.queues.tasks.counts([queue_name(B, "target-0")])
    assert queue.is_drained

    async def are_asked() -> bool:
        await run_cycle(here)
        return sim.stats.batch_requests == 4

    await until(are_asked)
    assert await here.states(B) == ["2 queued"] * 4
    assert sim.stats.batches_created == 1
