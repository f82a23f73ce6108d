"""What a writer's memory sends, keeps and lets go, without clock or network."""

from collections.abc import Sequence

import pytest

from eventlog.log import AppendResponse, AppendResult, EncodedEvent, Mode
from eventlog.outbox import RECORD_OVERHEAD, AttemptBuffer, Outbox
from tests.builders import BATCH, EVALUATION, history, records

LINGER = 5.0
CLAIM, RUNNING, RESPONDED, COMPLETED = records(history("provisioning running responded completed", first=1))


def an_outbox(*, max_bytes: int = 10**6) -> tuple[Outbox, AttemptBuffer]:
    """Return an outbox that keeps one claimed attempt."""
    outbox = Outbox(max_bytes=max_bytes)
    return outbox, outbox.keep(AttemptBuffer(EVALUATION, BATCH, 1), CLAIM)


def reply(*answers: AppendResult) -> AppendResponse:
    return AppendResponse(answers, "epoch")


def sent_and_acknowledged(outbox: Outbox, draft: AttemptBuffer, *added: EncodedEvent) -> None:
    for record in added:
        outbox.add(draft, record, 0.0)
    call = outbox.send(draft, "epoch")
    outbox.answered(draft, reply(*[AppendResult.OK] * len(call.records)))


def sequences(taken: Sequence[EncodedEvent]) -> list[int]:
    return [record.event.sequence for record in taken]


def test_an_event_waits_for_company():
    """It is due once it has lingered, and takes along what came in meanwhile."""
    outbox, draft = an_outbox()
    outbox.add(draft, RUNNING, 100.0)
    outbox.add(draft, RESPONDED, 103.0)
    assert outbox.due(104.9, LINGER, 10) == []
    assert outbox.next_due(LINGER) == 105.0
    assert outbox.due(105.0, LINGER, 10) == [draft]
    call = outbox.send(draft, "epoch")
    assert (sequences(call.records), call.mode, call.epoch) == ([2, 3], Mode.NORMAL, "epoch")


def test_a_closing_event_is_due_at_once():
    """Nobody waits for company at the end."""
    outbox, draft = an_outbox()
    outbox.add(draft, RUNNING, 100.0)
    outbox.add(draft, COMPLETED, 100.0)
    assert outbox.due(100.0, LINGER, 10) == [draft]


def test_nothing_is_due_where_nothing_waits():
    """An acknowledged draft has nothing to say."""
    outbox, draft = an_outbox()
    assert outbox.next_due(LINGER) is None
    sent_and_acknowledged(outbox, draft, RUNNING)
    assert (outbox.next_due(LINGER), outbox.depth, draft.acknowledged) == (None, 0, True)


def test_a_draft_in_flight_waits_for_its_answer():
    """One call at a time keeps an attempt's order."""
    outbox, draft = an_outbox()
    outbox.add(draft, RUNNING, 0.0)
    outbox.send(draft, "epoch")
    outbox.add(draft, COMPLETED, 0.0)
    assert outbox.due(100.0, LINGER, 10) == []
    assert outbox.next_due(LINGER) is None
    assert (draft.depth, draft.acknowledged) == (2, False)
    outbox.answered(draft, reply(AppendResult.OK))
    assert sequences(outbox.send(draft, "epoch").records) == [4]


def test_a_round_trip_is_limited():
    """What does not fit goes with the next one, in the order of recording."""
    outbox = Outbox(max_bytes=10**6)
    drafts = [outbox.keep(AttemptBuffer(f"e-{number}", BATCH, 1)) for number in range(5)]
    for draft in drafts:
        outbox.add(draft, RUNNING, 0.0)
    assert outbox.due(LINGER, LINGER, 3) == drafts[:3]


def test_a_call_whose_fate_is_unknown_goes_again_in_order():
    """What was recorded meanwhile follows what was in flight, as old as the oldest of them."""
    outbox, draft = an_outbox()
    outbox.add(draft, RUNNING, 100.0)
    outbox.send(draft, "epoch")
    outbox.add(draft, RESPONDED, 107.0)
    outbox.failed(draft)
    assert outbox.due(105.0, LINGER, 10) == [draft]
    call = outbox.send(draft, "epoch")
    assert (sequences(call.records), call.mode) == ([2, 3], Mode.NORMAL)


def test_a_duplicate_is_as_good_as_ok():
    """The first try had happened after all."""
    outbox, draft = an_outbox()
    outbox.add(draft, RUNNING, 0.0)
    outbox.send(draft, "epoch")
    outbox.answered(draft, reply(AppendResult.DUPLICATE))
    assert draft.acknowledged
    assert sequences(draft.tail) == [1, 2]


@pytest.mark.parametrize("refusal", [AppendResult.FENCED, AppendResult.CLOSED, AppendResult.CONFLICT])
def test_a_refusal_loses_the_draft(refusal):
    """Somebody else ended the attempt: nothing more is sent, and its memory is given back."""
    outbox, draft = an_outbox()
    outbox.add(draft, RUNNING, 0.0)
    outbox.add(draft, COMPLETED, 0.0)
    outbox.send(draft, "epoch")
    outbox.answered(draft, reply(AppendResult.OK, refusal))
    assert draft.lost is refusal
    assert (list(outbox), outbox.bytes, outbox.next_due(LINGER)) == ([], 0, None)


def test_what_was_paid_for_outlives_the_attempt_that_was_fenced_off():
    """An answer that came too late is sent once more, to be kept and no more than that."""
    outbox, draft = an_outbox()
    sent_and_acknowledged(outbox, draft, RUNNING)
    outbox.add(draft, RESPONDED, 0.0)
    outbox.send(draft, "epoch")
    outbox.add(draft, COMPLETED, 0.0)
    outbox.answered(draft, reply(AppendResult.FENCED))
    assert draft.lost is AppendResult.FENCED
    [late] = outbox.due(0.0, LINGER, 10)
    call = outbox.send(late, "epoch")
    assert (call.mode, call.epoch, sequences(call.records)) == (Mode.LATE, "", [3])
    outbox.answered(late, reply(AppendResult.FENCED))
    assert (list(outbox), outbox.bytes, outbox.next_due(LINGER)) == ([], 0, None)


def test_an_answer_that_is_on_record_already_is_not_sent_again_as_late():
    """Only what the fence kept out is: another body under a known key would be a conflict."""
    outbox, draft = an_outbox()
    outbox.add(draft, RUNNING, 0.0)
    outbox.add(draft, RESPONDED, 0.0)
    outbox.send(draft, "epoch")
    outbox.add(draft, COMPLETED, 0.0)
    outbox.answered(draft, reply(AppendResult.OK, AppendResult.OK))
    outbox.send(draft, "epoch")
    outbox.answered(draft, reply(AppendResult.FENCED))
    assert list(outbox) == []


def test_after_epoch_the_whole_draft_goes_again_as_one_tail():
    """What had been acknowledged, what was in flight and what came in meanwhile: one call."""
    outbox, draft = an_outbox()
    sent_and_acknowledged(outbox, draft, RUNNING)
    outbox.add(draft, RESPONDED, 0.0)
    outbox.send(draft, "epoch")
    outbox.add(draft, COMPLETED, 0.0)
    outbox.answered(draft, reply(AppendResult.EPOCH))
    call = outbox.send(draft, "epoch 2")
    assert (sequences(call.records), call.mode, call.epoch) == ([1, 2, 3, 4], Mode.TAIL, "epoch 2")
    outbox.answered(draft, reply(*[AppendResult.OK] * 4))
    assert draft.acknowledged


def test_a_tail_that_was_not_answered_goes_again_as_a_tail():
    """As ordinary events it would be fenced: Redis does not know the attempt any more."""
    outbox, draft = an_outbox()
    outbox.forgotten(draft)
    assert outbox.send(draft, "epoch 2").mode is Mode.TAIL
    outbox.failed(draft)
    assert not draft.acknowledged
    assert outbox.due(0.0, LINGER, 10) == [draft]
    again = outbox.send(draft, "epoch 2")
    assert (sequences(again.records), again.mode) == ([1], Mode.TAIL)
    outbox.answered(draft, reply(AppendResult.DUPLICATE))
    outbox.add(draft, RUNNING, 0.0)
    assert outbox.send(draft, "epoch 2").mode is Mode.NORMAL


def test_a_draft_forgotten_in_flight_goes_again_whatever_the_answer():
    """The answer may be from before the loss."""
    outbox, draft = an_outbox()
    outbox.add(draft, RUNNING, 0.0)
    outbox.send(draft, "epoch")
    outbox.forgotten(draft)
    outbox.answered(draft, reply(AppendResult.OK))
    assert not draft.acknowledged
    call = outbox.send(draft, "epoch 2")
    assert (sequences(call.records), call.mode) == ([1, 2], Mode.TAIL)


def test_a_lower_attempt_is_put_back_before_a_higher_one_is_sent():
    """Whichever was forgotten first: a higher attempt in the log would turn the lower one away."""
    outbox, first = an_outbox()
    second = outbox.keep(AttemptBuffer(EVALUATION, BATCH, 2))
    sent_and_acknowledged(outbox, second, *records(history("queued", attempt=2)))
    outbox.forgotten(second)
    outbox.forgotten(first)
    assert outbox.due(0.0, LINGER, 10) == [first]
    assert outbox.next_due(LINGER) == 0.0
    outbox.send(first, "epoch")
    outbox.failed(first)
    assert outbox.due(0.0, LINGER, 10) == [first]  # not in one round trip either, which may fail by halves
    outbox.send(first, "epoch")
    outbox.answered(first, reply(AppendResult.OK))
    assert outbox.due(0.0, LINGER, 10) == [second]


def test_a_finished_attempt_is_kept_though_a_higher_one_turns_its_tail_away():
    """Its events may be in the log all the same; until Postgres has them, another loss needs them here."""
    outbox, draft = an_outbox()
    sent_and_acknowledged(outbox, draft, RUNNING, RESPONDED, COMPLETED)
    outbox.forgotten(draft)
    outbox.send(draft, "epoch")
    outbox.answered(draft, reply(*[AppendResult.FENCED] * 4))
    assert (draft.lost, draft.acknowledged, list(outbox)) == (None, True, [draft])
    outbox.forgotten(draft)
    assert sequences(outbox.send(draft, "epoch").records) == [1, 2, 3, 4]


def test_an_unfinished_attempt_is_lost_when_its_tail_is_turned_away():
    """What the log never acknowledged is not on record: its owner must be told."""
    outbox, draft = an_outbox()
    sent_and_acknowledged(outbox, draft, RUNNING)
    outbox.add(draft, COMPLETED, 0.0)
    outbox.forgotten(draft)
    outbox.send(draft, "epoch")
    outbox.answered(draft, reply(*[AppendResult.FENCED] * 3))
    assert (draft.lost, list(outbox)) == (AppendResult.FENCED, [])


def test_a_draft_that_has_said_nothing_has_nothing_to_put_back():
    """An attempt owned but not opened is not made up."""
    outbox = Outbox(max_bytes=10)
    draft = outbox.keep(AttemptBuffer(EVALUATION, BATCH, 1))
    outbox.forgotten(draft)
    assert draft.acknowledged
    assert outbox.next_due(LINGER) is None


def test_a_full_outbox_takes_no_more_attempts_but_lets_those_it_has_go_on():
    """Room is about new work; events are never dropped."""
    outbox, draft = an_outbox(max_bytes=len(CLAIM.body) + RECORD_OVERHEAD + 1)
    room = [outbox.has_room]
    for record in (RUNNING, COMPLETED):
        outbox.add(draft, record, 0.0)
        room.append(outbox.has_room)
    assert (room, draft.depth) == ([True, False, False], 2)
    outbox.release(draft)
    assert (outbox.has_room, outbox.bytes) == (True, 0)


def test_the_tail_counts_as_memory_until_it_is_released():
    """Acknowledged events are kept, and paid for."""
    outbox, draft = an_outbox()
    before = outbox.bytes
    sent_and_acknowledged(outbox, draft, RUNNING, COMPLETED)
    assert outbox.bytes == before + sum(len(each.body) + RECORD_OVERHEAD for each in (RUNNING, COMPLETED))
    outbox.release(draft)
    assert outbox.bytes == 0


@pytest.mark.parametrize(
    ("mark", "settled"),
    [((0, -1), False), ((1, 2), False), ((1, 3), True), ((2, 0), True), (None, True)],
)
def test_a_closed_draft_is_settled_once_postgres_has_it(mark, settled):
    """By its last sequence, a higher attempt, or the expiry of the stream."""
    outbox, draft = an_outbox()
    closing = records(history("retrying", first=3))
    sent_and_acknowledged(outbox, draft, RUNNING, *closing)
    assert draft.is_settled_by(mark) is settled


@pytest.mark.parametrize(("mark", "settled"), [((1, 2), False), (None, True), ((2, 0), True)])
def test_an_open_draft_is_settled_only_when_the_attempt_is_over(mark, settled):
    """That Postgres has all so far is no reason to forget; a higher attempt is, or an expired stream."""
    outbox, draft = an_outbox()
    sent_and_acknowledged(outbox, draft, RUNNING)
    assert draft.is_settled_by(mark) is settled


def test_a_draft_without_events_is_not_settled():
    """Its stream is not there because nothing was said yet."""
    assert not AttemptBuffer("evaluation-1", "batch-1", 1).is_settled_by(None)


def test_a_draft_that_is_not_on_record_is_never_settled():
    """Unsent, in flight or forgotten: the log must have it first."""
    outbox, draft = an_outbox()
    outbox.add(draft, COMPLETED, 0.0)
    assert not draft.is_settled_by((1, 4))
    outbox.send(draft, "epoch")
    assert not draft.is_settled_by((1, 4))
    outbox.answered(draft, reply(AppendResult.OK))
    outbox.forgotten(draft)
    assert not draft.is_settled_by(None)
