"""How an owner's events get on record, and back on record after Redis lost them (rules 15 to 18)."""

from collections.abc import Iterator

from eventlog.log import AppendResult
from tests.protocol_model.executor import Seen, idle
from tests.protocol_model.faults import Fault
from tests.protocol_model.moves import Move
from tests.protocol_model.redis import append, append_tail
from tests.protocol_model.rules import Rule
from tests.protocol_model.world import Event, SlotState


def writes(seen: Seen) -> Iterator[Move]:
    """Send what is recorded; a loss of Redis comes first."""
    if seen.me.epoch != seen.epoch:
        yield _learns_of_the_loss(seen)
    elif seen.me.outbox:
        first, *others = seen.me.outbox
        yield from _sends(seen, first)
        if others and Fault.REORDER in seen.budget:
            yield from _sends(seen, others[0], fault=Fault.REORDER)


def _sends(seen: Seen, event: Event, *, fault: Fault | None = None) -> Iterator[Move]:
    me = seen.me
    answer, stream = append(seen.stream, event, epoch=seen.epoch, rules=seen.setup.rules)
    rest = tuple(other for other in me.outbox if other != event)
    story = f"sends {event}: {answer}"
    if answer.acknowledged:
        tail = tuple(sorted((*me.tail, event)))
        yield seen.becomes(story, me._replace(outbox=rest, tail=tail), stream=stream, fault=fault)
    elif Rule.STOP_ON_REFUSAL in seen.setup.rules:
        yield seen.becomes(f"{story}, stops", idle(me), fault=fault)
    else:
        yield seen.becomes(f"{story}, goes on", me._replace(outbox=rest), fault=fault)
    if answer is AppendResult.OK and not fault and Fault.LOST_REPLY in seen.budget:
        yield seen.becomes(f"{story}, but the reply is lost", me, stream=stream, fault=Fault.LOST_REPLY)


def _learns_of_the_loss(seen: Seen) -> Move:
    """EPOCH comes with the next word, or within a second without one."""
    me, rules = seen.me, seen.setup.rules
    aware = me._replace(epoch=seen.epoch)
    if Rule.EPOCH_ON_EVERY_APPEND not in rules:
        return seen.becomes("does not notice that Redis forgot", aware)
    asks_again = me.asked and Rule.UNANSWERED_CLAIM_ASKED_AGAIN in rules
    if me.slot is SlotState.HOLDING and Rule.DROP_UNCLAIMED_ON_EPOCH in rules and not asks_again:
        aware = idle(aware, tail=me.tail)
    if not me.tail:
        return seen.becomes("receives EPOCH", aware)
    if Rule.TAIL_PUT_BACK not in rules:
        return seen.becomes("receives EPOCH, drops everything", idle(aware))
    answer, stream = append_tail(seen.stream, me.tail, epoch=seen.epoch, rules=rules)
    story = f"receives EPOCH, puts its tail of attempt {me.tail[0].attempt} back: {answer}"
    if answer is AppendResult.OK:
        return seen.becomes(story, aware, stream=stream)
    return seen.becomes(f"{story}, drops it", idle(aware), stream=stream)
