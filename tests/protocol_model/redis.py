"""What append.lua answers, in the order of rule 8, as pure functions of a stream."""

from collections.abc import Iterable

from eventlog.lifecycle import CLOSING_TYPES
from eventlog.log import AppendResult, Mode
from tests.protocol_model.rules import Rule, Rules
from tests.protocol_model.world import Event, Stream


def append(
    stream: Stream, event: Event, *, epoch: int, rules: Rules, mode: Mode = Mode.NORMAL
) -> tuple[AppendResult, Stream]:
    """Append one event whose writer has seen the current epoch."""
    answer = _judge(stream, event, epoch=epoch, rules=rules, mode=mode)
    if answer is not AppendResult.OK:
        return answer, stream
    begins = event.sequence == 0 or event.attempt > stream.newest
    persists = begins and Rule.OPENING_PERSISTS in rules
    # The fence notes in which epoch sequence 0 came, whatever its body has.
    entry = event if event.sequence else event._replace(epoch=epoch)
    return answer, Stream((*stream.entries, entry), stream.expiring and not persists)


def append_tail(
    stream: Stream, tail: Iterable[Event], *, epoch: int, rules: Rules
) -> tuple[AppendResult, Stream]:
    """Append a whole attempt in one call; answers with the first refusal, if there is one."""
    following, refusal = stream, AppendResult.OK
    for event in tail:
        answer, following = append(following, event, epoch=epoch, rules=rules, mode=Mode.TAIL)
        if not answer.acknowledged and refusal is AppendResult.OK:
            refusal = answer
    if refusal is not AppendResult.OK and Rule.TAIL_WHOLE_OR_NOT in rules:
        return refusal, stream
    return refusal, following


def _judge(stream: Stream, event: Event, *, epoch: int, rules: Rules, mode: Mode) -> AppendResult:
    if event.attempt < stream.newest and Rule.OLDER_IS_FENCED in rules:
        return AppendResult.FENCED
    known = stream.attempt(event.attempt)
    if event.sequence in known:
        same = known[event.sequence].body == event.body or Rule.OTHER_BODY_CONFLICTS not in rules
        return AppendResult.DUPLICATE if same else AppendResult.CONFLICT
    if Rule.CLOSED_BEYOND_CLOSING in rules and _is_beyond_closing(known, event):
        return AppendResult.CLOSED
    if event.sequence == 0:
        return AppendResult.OK
    if mode is Mode.TAIL:
        return _judge_tail(stream, event, rules)
    if mode is Mode.CLAIM:
        return _judge_claim(known.get(0), epoch, rules)
    is_newest = event.attempt == stream.newest or Rule.ONLY_NEWEST_GOES_ON not in rules
    return AppendResult.OK if is_newest else AppendResult.FENCED


def _is_beyond_closing(known: dict[int, Event], event: Event) -> bool:
    return any(other.type in CLOSING_TYPES and other.sequence < event.sequence for other in known.values())


def _judge_tail(stream: Stream, event: Event, rules: Rules) -> AppendResult:
    above = bool(stream.entries) and event.attempt > stream.newest
    return AppendResult.FENCED if above and Rule.TAIL_ABOVE_NEWEST not in rules else AppendResult.OK


def _judge_claim(opening: Event | None, epoch: int, rules: Rules) -> AppendResult:
    if opening is None:
        return AppendResult.FENCED if Rule.CLAIM_NEEDS_OPENING in rules else AppendResult.OK
    if opening.epoch != epoch and Rule.CLAIM_NEEDS_EPOCH in rules:
        return AppendResult.EPOCH
    return AppendResult.OK
