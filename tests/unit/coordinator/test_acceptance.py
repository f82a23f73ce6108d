"""Acceptance of a batch: evaluations are numbered, opened, linked, and answered from the cache."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta

import pytest

from coordinator.acceptance import LOOK_UP, accept
from coordinator.submission import NewEvaluation, Recall, SerialPlace
from domain.batch_spec import BatchSpec, TargetSpec, unpack
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.events import Event
from eventlog.keys import DEFAULT_SHARDS
from projections.ledger.batch import NewBatch
from projections.ledger.contract import AcceptedEvaluation, SerialLink
from projections.ledger.memory import MemoryLedger
from projections.ledger.postgres import ACCEPT_BYTES, LINK_BYTES, _chunks
from projections.store.memory import MemoryStore
from tests.builders import START, event
from tests.telemetry import tracing_spans

SPEC = BatchSpec("a batch", (TargetSpec("simulated", "simulated"),), retries=5)


class LedgerDouble(MemoryLedger):
    """A ledger with some cached answers, which records the cache keys it was queried for."""

    def __init__(self, **answers: Event) -> None:
        super().__init__(MemoryStore(lambda: 0.0), shards=DEFAULT_SHARDS, now=lambda: START)
        self.answers = answers
        self.asked: list[list[str]] = []

    async def cached(self, cache_keys: Sequence[str]) -> dict[str, Event]:
        self.asked.append(list(cache_keys))
        return {key: self.answers[key] for key in cache_keys if key in self.answers}

    async def opening(self, number: int, batch_id: str = "nightly") -> p.Queued:
        [one] = await self.openings([evaluation_id(batch_id, number)])
        data = one.events[0][0].data
        assert isinstance(data, p.Queued)
        return data


async def accepted(ledger: LedgerDouble, *evaluations: NewEvaluation, **head: object) -> int:
    """Accept a batch of these evaluations."""

    async def each() -> AsyncIterator[NewEvaluation]:
        for one in evaluations:
            yield one

    batch = NewBatch("nightly", SPEC, **head)  # type: ignore[arg-type]  # as the test wants it
    return await accept(ledger, batch, each(), now=START, shards=DEFAULT_SHARDS)


def case(number: int) -> p.Case:
    return p.Case(id=f"case-{number}", input=number)


async def test_evaluations_are_numbered_in_order() -> None:
    """Each evaluation opens with its case, variant, repetition and all its retries."""
    ledger = LedgerDouble()
    assert (
        await accepted(ledger, NewEvaluation(case(1)), NewEvaluation(case(2), variant=3, repetition=7)) == 2
    )
    assert await ledger.opening(1) == p.Queued(case=case(1), retries=5)
    assert await ledger.opening(2) == p.Queued(case=case(2), variant=3, repetition=7, retries=5)
    [first] = await ledger.openings(["nightly.00000001"])
    opening = first.events[0][0]
    assert (opening.key, opening.batch_id, opening.occurred_at) == ((1, 0), "nightly", START)


async def test_a_batch_keeps_its_attributes() -> None:
    """The ledger stores name, priority, project, spec and deadline."""
    ledger = LedgerDouble()
    await accepted(
        ledger, NewEvaluation(case(1)), project="ours", priority=4, max_duration=timedelta(hours=2)
    )
    batch = await ledger.batch("nightly")
    assert batch is not None
    assert (batch.name, batch.project, batch.priority, batch.progress.total) == ("a batch", "ours", 4, 1)
    assert batch.deadline == START + timedelta(hours=2)
    assert unpack(batch.spec) == SPEC
    assert (batch.state, batch.finished, batch.published_to) == ("running", False, "")


async def test_a_batch_without_cases_is_complete() -> None:
    """A batch without cases is finished as soon as it is accepted."""
    ledger = LedgerDouble()
    assert await accepted(ledger) == 0
    batch = await ledger.batch("nightly")
    assert batch is not None
    assert (batch.state, batch.finished) == ("completed", True)


async def test_places_in_a_group_become_links() -> None:
    """Links hold evaluation ids and field names, and the opening marks an evaluation with recalls."""
    ledger = LedgerDouble()
    await accepted(
        ledger,
        NewEvaluation(case(1)),
        NewEvaluation(case(2), serial=SerialPlace(1)),
        NewEvaluation(case(3), serial=SerialPlace(2, (Recall(1, "hero"), Recall(2)))),
    )
    ids = [evaluation_id("nightly", number) for number in (1, 2, 3)]
    assert await ledger.links(ids) == {
        ids[1]: SerialLink(ids[0]),
        ids[2]: SerialLink(ids[1], ((ids[0], "hero"), (ids[1], None))),
    }
    assert [(await ledger.opening(number)).in_group for number in (1, 2, 3)] == [False, False, True]


RESPONSE = event(p.Responded(output="42", usage=p.TokenUsage(3), cost_usd=0.5, latency_ms=8.0), sequence=3)
CACHED = p.Answer("42", p.TokenUsage(3), 0.5, 8.0, cached=True)


async def test_cached_answers_are_filled_in() -> None:
    """A cached answer is marked as such and replaces no recorded one; other evaluations stay open."""
    ledger = LedgerDouble(known=RESPONSE)
    recorded = p.Answer("41")
    await accepted(
        ledger,
        NewEvaluation(case(1), cache_key="known"),
        NewEvaluation(case(2), cache_key="unknown"),
        NewEvaluation(case(3)),
        NewEvaluation(case(4), cache_key="known", answer=recorded),
    )
    answers = [(await ledger.opening(number)).answer for number in (1, 2, 3, 4)]
    assert answers == [CACHED, None, None, recorded]
    assert ledger.asked == [["known", "unknown"]]


async def test_the_cache_is_not_queried_without_keys() -> None:
    """Evaluations without a cache key cause no cache lookup."""
    ledger = LedgerDouble()
    await accepted(ledger, NewEvaluation(case(1)), NewEvaluation(case(2)))
    assert ledger.asked == []


@pytest.mark.parametrize("keyed", [lambda _: True, lambda n: n % 3 == 0, lambda n: n > LOOK_UP])
async def test_the_cache_lookup_keeps_the_order(keyed: object) -> None:
    """Evaluations with and without keys keep their order over several lookups."""
    assert callable(keyed)
    ledger = LedgerDouble()
    many = [
        NewEvaluation(case(n), cache_key=f"key-{n}" if keyed(n) else None)
        for n in range(1, 2 * LOOK_UP + 3)
    ]
    assert await accepted(ledger, *many) == len(many)
    assert [(await ledger.opening(n)).case for n in range(1, len(many) + 1, 97)] == [
        case(n) for n in range(1, len(many) + 1, 97)
    ]
    assert sorted(key for page in ledger.asked for key in page) == sorted(
        one.cache_key for one in many if one.cache_key
    )
    assert all(len(page) <= LOOK_UP for page in ledger.asked)


@pytest.mark.parametrize(("share", "fewest", "most"), [(0.0, 0, 0), (0.5, 100, 300), (1.0, 400, 400)])
async def test_a_share_of_evaluations_is_traced(share: float, fewest: int, most: int) -> None:
    """A sampled evaluation starts a trace; the others have no traceparent."""
    ledger, evaluations = LedgerDouble(), [NewEvaluation(case(number)) for number in range(400)]
    with tracing_spans() as spans:
        await accepted(ledger, *evaluations, traced=share)
    begun = [span for span in spans if span.name == "eval.coordinator.accept"]
    stored = await ledger.openings([evaluation_id("nightly", number) for number in range(1, 401)])
    traced = [one for one in stored if one.events[0][0].traceparent]
    assert fewest <= len(begun) == len(traced) <= most


async def test_chunks_are_bounded_in_bytes_and_in_links():
    """A chunk of few large evaluations, or of few with many links, is inserted early."""

    async def chunk_sizes(body: bytes, link: SerialLink | None, count: int) -> list[int]:
        async def each() -> AsyncIterator[AcceptedEvaluation]:
            for _ in range(count):
                yield AcceptedEvaluation(event("queued"), body, 0, "case", 0, 1, None, link)

        return [len(chunk) async for chunk in _chunks(each(), 1_000)]

    assert await chunk_sizes(b"small", None, 1_500) == [1_000, 500]
    assert await chunk_sizes(b"x" * (ACCEPT_BYTES // 4), None, 10) == [4, 4, 2]
    linked = SerialLink("first", (("first", None),) * 1_000)
    assert max(await chunk_sizes(b"small", linked, 100)) * 1_000 * LINK_BYTES < 2 * ACCEPT_BYTES


async def test_cache_lookups_are_bounded_in_bytes(monkeypatch):
    """Large cases are looked up in smaller groups."""
    monkeypatch.setattr("coordinator.acceptance.LOOK_UP_BYTES", 40_000)
    ledger, large = LedgerDouble(), "x" * 10_000
    many = [NewEvaluation(p.Case(str(n), large, None), cache_key=f"key-{n}") for n in range(9)]
    await accepted(ledger, *many)
    assert [len(page) for page in ledger.asked] == [4, 4, 1]
