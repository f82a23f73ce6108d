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
    return outbox, outbox.track(AttemptBuffer(EVALUATION, BATCH, 1), CLAIM)


def reply(*answers: AppendResult) -> AppendResponse:
    return AppendResponse(answers, "epoch")


def sent_and_acknowledged(outbox: Outbox, buffer: AttemptBuffer, *added: EncodedEvent) -> None:
    for record in added:
        outbox.add(buffer, record, 0.0)
    call = outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(*[AppendResult.OK] * len(call.records)))


def sequences(taken: Sequence[EncodedEvent]) -> list[int]:
    return [record.event.sequence for record in taken]


def test_an_event_waits_for_company():
    """It is due once it has lingered, and takes along what came in meanwhile."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 100.0)
    outbox.add(buffer, RESPONDED, 103.0)
    assert outbox.due(104.9, LINGER, 10) == []
    assert outbox.next_due(LINGER) == 105.0
    assert outbox.due(105.0, LINGER, 10) == [buffer]
    call = outbox.send(buffer, "epoch")
    assert (sequences(call.records), call.mode, call.epoch) == ([2, 3], Mode.NORMAL, "epoch")


def test_a_closing_event_is_due_at_once():
    """Nobody waits for company at the end."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 100.0)
    outbox.add(buffer, COMPLETED, 100.0)
    assert outbox.due(100.0, LINGER, 10) == [buffer]


def test_nothing_is_due_where_nothing_waits():
    """An acknowledged buffer has nothing to say."""
    outbox, buffer = an_outbox()
    assert outbox.next_due(LINGER) is None
    sent_and_acknowledged(outbox, buffer, RUNNING)
    assert (outbox.next_due(LINGER), outbox.depth, buffer.acknowledged) == (None, 0, True)


def test_a_draft_in_flight_waits_for_its_answer():
    """One call at a time keeps an attempt's order."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.send(buffer, "epoch")
    outbox.add(buffer, COMPLETED, 0.0)
    assert outbox.due(100.0, LINGER, 10) == []
    assert outbox.next_due(LINGER) is None
    assert (buffer.depth, buffer.acknowledged) == (2, False)
    outbox.apply(buffer, reply(AppendResult.OK))
    assert sequences(outbox.send(buffer, "epoch").records) == [4]


def test_a_round_trip_is_limited():
    """What does not fit goes with the next one, in the order of recording."""
    outbox = Outbox(max_bytes=10**6)
    buffers = [outbox.track(AttemptBuffer(f"e-{number}", BATCH, 1)) for number in range(5)]
    for buffer in buffers:
        outbox.add(buffer, RUNNING, 0.0)
    assert outbox.due(LINGER, LINGER, 3) == buffers[:3]


def test_a_call_whose_fate_is_unknown_goes_again_in_order():
    """What was recorded meanwhile follows what was in flight, as old as the oldest of them."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 100.0)
    outbox.send(buffer, "epoch")
    outbox.add(buffer, RESPONDED, 107.0)
    outbox.requeue(buffer)
    assert outbox.due(105.0, LINGER, 10) == [buffer]
    call = outbox.send(buffer, "epoch")
    assert (sequences(call.records), call.mode) == ([2, 3], Mode.NORMAL)


def test_a_duplicate_is_as_good_as_ok():
    """The first try had happened after all."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(AppendResult.DUPLICATE))
    assert buffer.acknowledged
    assert sequences(buffer.tail) == [1, 2]


@pytest.mark.parametrize("refusal", [AppendResult.FENCED, AppendResult.CLOSED, AppendResult.CONFLICT])
def test_a_refusal_loses_the_draft(refusal):
    """Somebody else ended the attempt: nothing more is sent, and its memory is given back."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.add(buffer, COMPLETED, 0.0)
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(AppendResult.OK, refusal))
    assert buffer.lost is refusal
    assert (list(outbox), outbox.bytes, outbox.next_due(LINGER)) == ([], 0, None)


def test_what_was_paid_for_outlives_the_attempt_that_was_fenced_off():
    """An answer that came too late is sent once more, to be kept and no more than that."""
    outbox, buffer = an_outbox()
    sent_and_acknowledged(outbox, buffer, RUNNING)
    outbox.add(buffer, RESPONDED, 0.0)
    outbox.send(buffer, "epoch")
    outbox.add(buffer, COMPLETED, 0.0)
    outbox.apply(buffer, reply(AppendResult.FENCED))
    assert buffer.lost is AppendResult.FENCED
    [late] = outbox.due(0.0, LINGER, 10)
    call = outbox.send(late, "epoch")
    assert (call.mode, call.epoch, sequences(call.records)) == (Mode.LATE, "", [3])
    outbox.apply(late, reply(AppendResult.FENCED))
    assert (list(outbox), outbox.bytes, outbox.next_due(LINGER)) == ([], 0, None)


def test_an_answer_that_is_on_record_already_is_not_sent_again_as_late():
    """Only what the fence kept out is: another body under a known key would be a conflict."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.add(buffer, RESPONDED, 0.0)
    outbox.send(buffer, "epoch")
    outbox.add(buffer, COMPLETED, 0.0)
    outbox.apply(buffer, reply(AppendResult.OK, AppendResult.OK))
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(AppendResult.FENCED))
    assert list(outbox) == []


def test_after_epoch_the_whole_draft_goes_again_as_one_tail():
    """What had been acknowledged, what was in flight and what came in meanwhile: one call."""
    outbox, buffer = an_outbox()
    sent_and_acknowledged(outbox, buffer, RUNNING)
    outbox.add(buffer, RESPONDED, 0.0)
    outbox.send(buffer, "epoch")
    outbox.add(buffer, COMPLETED, 0.0)
    outbox.apply(buffer, reply(AppendResult.EPOCH))
    call = outbox.send(buffer, "epoch 2")
    assert (sequences(call.records), call.mode, call.epoch) == ([1, 2, 3, 4], Mode.TAIL, "epoch 2")
    outbox.apply(buffer, reply(*[AppendResult.OK] * 4))
    assert buffer.acknowledged


def test_a_tail_that_was_not_answered_goes_again_as_a_tail():
    """As ordinary events it would be fenced: Redis does not know the attempt any more."""
    outbox, buffer = an_outbox()
    outbox.reappend(buffer)
    assert outbox.send(buffer, "epoch 2").mode is Mode.TAIL
    outbox.requeue(buffer)
    assert not buffer.acknowledged
    assert outbox.due(0.0, LINGER, 10) == [buffer]
    again = outbox.send(buffer, "epoch 2")
    assert (sequences(again.records), again.mode) == ([1], Mode.TAIL)
    outbox.apply(buffer, reply(AppendResult.DUPLICATE))
    outbox.add(buffer, RUNNING, 0.0)
    assert outbox.send(buffer, "epoch 2").mode is Mode.NORMAL


def test_a_draft_forgotten_in_flight_goes_again_whatever_the_answer():
    """The answer may be from before the loss."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.send(buffer, "epoch")
    outbox.reappend(buffer)
    outbox.apply(buffer, reply(AppendResult.OK))
    assert not buffer.acknowledged
    call = outbox.send(buffer, "epoch 2")
    assert (sequences(call.records), call.mode) == ([1, 2], Mode.TAIL)


def test_a_lower_attempt_is_put_back_before_a_higher_one_is_sent():
    """Whichever was forgotten first: a higher attempt in the log would turn the lower one away."""
    outbox, first = an_outbox()
    second = outbox.track(AttemptBuffer(EVALUATION, BATCH, 2))
    sent_and_acknowledged(outbox, second, *records(history("queued", attempt=2)))
    outbox.reappend(second)
    outbox.reappend(first)
    assert outbox.due(0.0, LINGER, 10) == [first]
    assert outbox.next_due(LINGER) == 0.0
    outbox.send(first, "epoch")
    outbox.requeue(first)
    assert outbox.due(0.0, LINGER, 10) == [first]  # not in one round trip either, which may fail by halves
    outbox.send(first, "epoch")
    outbox.apply(first, reply(AppendResult.OK))
    assert outbox.due(0.0, LINGER, 10) == [second]


def test_a_finished_attempt_is_kept_though_a_higher_one_turns_its_tail_away():
    """Its events may be in the log all the same; until Postgres has them, another loss needs them here."""
    outbox, buffer = an_outbox()
    sent_and_acknowledged(outbox, buffer, RUNNING, RESPONDED, COMPLETED)
    outbox.reappend(buffer)
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(*[AppendResult.FENCED] * 4))
    assert (buffer.lost, buffer.acknowledged, list(outbox)) == (None, True, [buffer])
    outbox.reappend(buffer)
    assert sequences(outbox.send(buffer, "epoch").records) == [1, 2, 3, 4]


def test_an_unfinished_attempt_is_lost_when_its_tail_is_turned_away():
    """What the log never acknowledged is not on record: its owner must be told."""
    outbox, buffer = an_outbox()
    sent_and_acknowledged(outbox, buffer, RUNNING)
    outbox.add(buffer, COMPLETED, 0.0)
    outbox.reappend(buffer)
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(*[AppendResult.FENCED] * 3))
    assert (buffer.lost, list(outbox)) == (AppendResult.FENCED, [])


def test_a_draft_that_has_said_nothing_has_nothing_to_put_back():
    """An attempt owned but not opened is not made up."""
    outbox = Outbox(max_bytes=10)
    buffer = outbox.track(AttemptBuffer(EVALUATION, BATCH, 1))
    outbox.reappend(buffer)
    assert buffer.acknowledged
    assert outbox.next_due(LINGER) is None


def test_a_full_outbox_takes_no_more_attempts_but_lets_those_it_has_go_on():
    """Room is about new work; events are never dropped."""
    outbox, buffer = an_outbox(max_bytes=len(CLAIM.body) + RECORD_OVERHEAD + 1)
    room = [outbox.has_capacity]
    for record in (RUNNING, COMPLETED):
        outbox.add(buffer, record, 0.0)
        room.append(outbox.has_capacity)
    assert (room, buffer.depth) == ([True, False, False], 2)
    outbox.release(buffer)
    assert (outbox.has_capacity, outbox.bytes) == (True, 0)


def test_the_tail_counts_as_memory_until_it_is_released():
    """Acknowledged events are kept, and paid for."""
    outbox, buffer = an_outbox()
    before = outbox.bytes
    sent_and_acknowledged(outbox, buffer, RUNNING, COMPLETED)
    assert outbox.bytes == before + sum(len(each.body) + RECORD_OVERHEAD for each in (RUNNING, COMPLETED))
    outbox.release(buffer)
    assert outbox.bytes == 0


@pytest.mark.parametrize(
    ("mark", "settled"),
    [((0, -1), False), ((1, 2), False), ((1, 3), True), ((2, 0), True), (None, True)],
)
def test_a_closed_draft_is_settled_once_postgres_has_it(mark, settled):
    """By its last sequence, a higher attempt, or the expiry of the stream."""
    outbox, buffer = an_outbox()
    closing = records(history("retrying", first=3))
    sent_and_acknowledged(outbox, buffer, RUNNING, *closing)
    assert buffer.is_committed_by(mark) is settled


@pytest.mark.parametrize(("mark", "settled"), [((1, 2), False), (None, True), ((2, 0), True)])
def test_an_open_draft_is_settled_only_when_the_attempt_is_over(mark, settled):
    """That Postgres has all so far is no reason to forget; a higher attempt is, or an expired stream."""
    outbox, buffer = an_outbox()
    sent_and_acknowledged(outbox, buffer, RUNNING)
    assert buffer.is_committed_by(mark) is settled


def test_a_draft_without_events_is_not_settled():
    """Its stream is not there because nothing was said yet."""
    assert not AttemptBuffer("evaluation-1", "batch-1", 1).is_committed_by(None)


def test_a_draft_that_is_not_on_record_is_never_settled():
    """Unsent, in flight or forgotten: the log must have it first."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, COMPLETED, 0.0)
    assert not buffer.is_committed_by((1, 4))
    outbox.send(buffer, "epoch")
    assert not buffer.is_committed_by((1, 4))
    outbox.apply(buffer, reply(AppendResult.OK))
    outbox.reappend(buffer)
    assert not buffer.is_committed_by(None)
