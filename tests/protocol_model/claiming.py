"""How an executor comes to own an attempt: one event, one answer to wait for (rules 11 to 14)."""

from collections.abc import Iterator
from typing import Any

from eventlog.log import AppendResult, Mode
from tests.protocol_model.executor import Seen, idle
from tests.protocol_model.faults import Fault
from tests.protocol_model.invariants import Broken, brings_answer, broken_by_claim
from tests.protocol_model.moves import Move
from tests.protocol_model.redis import append
from tests.protocol_model.rules import Rule
from tests.protocol_model.world import Event, Executor, SlotState, Stream, World


def claims(seen: Seen) -> Iterator[Move]:
    """Ask Redis for the attempt whose task is at hand."""
    if seen.me.slot is not SlotState.HOLDING or seen.me.epoch != seen.epoch:
        return
    claim = _claim(seen)
    answer, stream = append(seen.stream, claim, epoch=seen.epoch, rules=seen.setup.rules, mode=Mode.CLAIM)
    if answer is AppendResult.OK or (
        answer is AppendResult.DUPLICATE and Rule.OWN_DUPLICATE_OWNS in seen.setup.rules
    ):
        yield _owns(seen, claim, answer, stream)
    else:
        yield seen.becomes(f"claims {claim}: {answer}, drops the task", idle(seen.me, tail=seen.me.tail))
    yield from _is_not_answered(seen, claim, answer, stream)


def _claim(seen: Seen) -> Event:
    if Rule.NONCE_IN_CLAIM not in seen.setup.rules:
        return seen.event(1, "provisioning")
    return seen.event(1, "provisioning")._replace(by=f"{seen.process}/{seen.setup.slot}{seen.me.delivery}")


def _owns(seen: Seen, claim: Event, answer: AppendResult, stream: Stream) -> Move:
    owner = seen.me._replace(
        slot=SlotState.RUNNING,
        knows_answer=_finds_answer(seen, stream),
        outbox=(seen.event(2, "running"),),
        # An older tail may go: that this attempt could be claimed proves that Postgres is past it.
        tail=(claim,),
        delivery=seen.me.delivery + 1,
        asked=False,
    )
    ledger = seen.ledger._replace(owned=seen.ledger.owned | {claim.attempt})
    check = _rightful_0 if seen.setup.slot == 0 else _rightful_1
    return seen.becomes(f"claims {claim}: {answer}", owner, stream=stream, ledger=ledger, check=check)


def _finds_answer(seen: Seen, stream: Stream) -> bool:
    if Rule.REPLY_BRINGS_STREAM in seen.setup.rules:
        return brings_answer(stream.entries)
    return brings_answer(stream.attempt(seen.me.attempt).values())


def _is_not_answered(seen: Seen, claim: Event, answer: AppendResult, stream: Stream) -> Iterator[Move]:
    asked = seen.me._replace(asked=True)
    if Fault.LOST_REQUEST in seen.budget:
        yield seen.becomes(f"claims {claim}: the request is lost", asked, fault=Fault.LOST_REQUEST)
    if Fault.LOST_REPLY in seen.budget and answer is AppendResult.OK:
        story = f"claims {claim}: OK, but the reply is lost"
        yield seen.becomes(story, asked, stream=stream, fault=Fault.LOST_REPLY)


def _rightful_0(before: World, after: tuple[Any, ...]) -> Broken:
    claimed: Executor = after[0]
    return broken_by_claim(before, claimed, before.executor_1)


def _rightful_1(before: World, after: tuple[Any, ...]) -> Broken:
    claimed: Executor = after[0]
    return broken_by_claim(before, claimed, before.executor_0)
