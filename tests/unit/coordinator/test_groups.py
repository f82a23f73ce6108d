"""Contexts of serial groups: the outputs of earlier evaluations, derived from the log."""

from typing import Any

from pydantic_core import from_json

from coordinator.groups import GroupContext, contexts
from domain.batch_spec import BatchSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.keys import DEFAULT_SHARDS
from projections.ledger.contract import SerialLink
from projections.ledger.memory import MemoryLedger
from tests.builders import START, history
from tests.storage_world import World

SPEC = BatchSpec("talk", (TargetSpec("simulated", "simulated"),), ("Repeat: {input}", "{hero}: {input}"))
DONE = "queued provisioning running responded completed"
ME = "me"


class LedgerDouble:
    """Stored evaluations, and a later one that needs their answers."""

    def __init__(self) -> None:
        self.world = World()
        self.ledger = MemoryLedger(self.world.tables, shards=DEFAULT_SHARDS, now=lambda: START)

    async def lived(self, number: int, words: str, *, output: str = "4", **queued: Any) -> None:
        """Store an evaluation with these events."""
        opening = p.Queued(case=p.Case(id=f"case-{number}", input=f"question {number}"), **queued)
        key = evaluation_id("talk", number)
        own: dict[str, Any] = {"queued": opening, "responded": p.Responded(output=output)}
        self.world.xadd(*history(words, evaluation_id=key, batch_id="talk", **own))
        await self.world.storage().store([key])

    async def left(self, **recalls: int | None) -> GroupContext:
        """Derive the context: fields by name, turns by `turn_n`."""
        needed = tuple(
            (evaluation_id("talk", number or 0), None if name.startswith("turn_") else name)
            for name, number in recalls.items()
        )
        return (await contexts(self.ledger, SPEC, {ME: SerialLink("before", needed)}))[ME]


async def test_without_recalls_the_context_is_empty() -> None:
    """It has no fields, no turns, and no missing answer."""
    assert from_json((await LedgerDouble().left()).packed()) == {"stored": {}, "history": []}


async def test_outputs_are_stored_under_their_names() -> None:
    """Each field has the output of its evaluation."""
    ledger = LedgerDouble()
    await ledger.lived(1, DONE, output="Ada")
    await ledger.lived(2, DONE, output="wrote a program")
    left = await ledger.left(hero=1, deed=2)
    assert (left.stored, left.missing) == ({"hero": "Ada", "deed": "wrote a program"}, None)


async def test_the_history_has_the_rendered_prompts() -> None:
    """A turn is the prompt as it was rendered, and the answer."""
    ledger = LedgerDouble()
    await ledger.lived(1, DONE, output="Ada")
    await ledger.lived(2, DONE, output="a program", variant=1)
    left = await ledger.left(hero=1, turn_1=1, turn_2=2)
    assert left.history == [("Repeat: question 1", "Ada"), ("Ada: question 2", "a program")]


async def test_a_prompt_that_can_not_be_rendered_stays_a_template() -> None:
    """A missing field does not remove the turn."""
    ledger = LedgerDouble()
    await ledger.lived(2, DONE, variant=1)
    assert (await ledger.left(turn_2=2)).history == [("{hero}: {input}", "4")]


async def test_a_recorded_or_cached_answer_counts() -> None:
    """It is used like an answer of a call."""
    ledger = LedgerDouble()
    await ledger.lived(1, "queued provisioning running completed", answer=p.Answer("known"))
    assert (await ledger.left(hero=1)).stored == {"hero": "known"}


async def test_a_missing_answer_is_reported_with_case_and_error() -> None:
    """The error names the case, its phase and its fault."""
    ledger = LedgerDouble()
    await ledger.lived(1, "queued provisioning running failed")
    missing = (await ledger.left(hero=1)).missing
    assert missing == p.ErrorDetail(
        "dependency", "needs the answer to case-1, which is failed: permanent: no such model"
    )


async def test_an_answer_without_a_verdict_is_missing() -> None:
    """An evaluation that was answered and not scored has no usable output."""
    ledger = LedgerDouble()
    await ledger.lived(1, "queued provisioning running responded timed_out")
    missing = (await ledger.left(hero=1)).missing
    assert missing is not None
    assert missing.message == "needs the answer to case-1, which is timed_out"


async def test_the_first_missing_answer_is_reported() -> None:
    """Further missing answers are not listed."""
    ledger = LedgerDouble()
    await ledger.lived(1, DONE)
    await ledger.lived(2, "queued provisioning running failed")
    missing = (await ledger.left(hero=1, deed=2, end=3)).missing
    assert missing is not None
    assert "case-2" in missing.message


async def test_an_unknown_evaluation_is_missing() -> None:
    """The error names it by its id."""
    missing = (await LedgerDouble().left(hero=9)).missing
    assert missing is not None
    assert "talk.00000009, which is unopened" in missing.message
