"""The outbox of a writer, without clock or network: what it sends, keeps and releases."""

from collections.abc import Sequence

import pytest

from eventlog.log import AppendResponse, AppendResult, EncodedEvent, Mode
from eventlog.outbox import RECORD_OVERHEAD, AttemptBuffer, Outbox
from tests.builders import BATCH, EVALUATION, history, records

LINGER = 5.0
CLAIM, RUNNING, RESPONDED, COMPLETED = records(history("provisioning running responded completed", first=1))


def an_outbox(*, max_bytes: int = 10**6) -> tuple[Outbox, AttemptBuffer]:
    """Return an outbox with one claimed attempt."""
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


def test_an_event_is_due_after_the_linger_time():
    """The event is due once it has lingered, and is sent with the events recorded meanwhile."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 100.0)
    outbox.add(buffer, RESPONDED, 103.0)
    assert outbox.due(104.9, LINGER, 10) == []
    assert outbox.next_due(LINGER) == 105.0
    assert outbox.due(105.0, LINGER, 10) == [buffer]
    call = outbox.send(buffer, "epoch")
    assert (sequences(call.records), call.mode, call.epoch) == ([2, 3], Mode.NORMAL, "epoch")


def test_a_closing_event_is_due_at_once():
    """A closing event does not wait for the linger time."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 100.0)
    outbox.add(buffer, COMPLETED, 100.0)
    assert outbox.due(100.0, LINGER, 10) == [buffer]


def test_nothing_is_due_without_unsent_events():
    """A buffer whose events are all acknowledged has nothing to send."""
    outbox, buffer = an_outbox()
    assert outbox.next_due(LINGER) is None
    sent_and_acknowledged(outbox, buffer, RUNNING)
    assert (outbox.next_due(LINGER), outbox.depth, buffer.acknowledged) == (None, 0, True)


def test_a_buffer_in_flight_is_not_due():
    """At most one call per attempt is in flight, which preserves the order of its events."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.send(buffer, "epoch")
    outbox.add(buffer, COMPLETED, 0.0)
    assert outbox.due(100.0, LINGER, 10) == []
    assert outbox.next_due(LINGER) is None
    assert (buffer.depth, buffer.acknowledged) == (2, False)
    outbox.apply(buffer, reply(AppendResult.OK))
    assert sequences(outbox.send(buffer, "epoch").records) == [4]


def test_the_size_of_a_round_trip_is_limited():
    """Events that do not fit are sent with the next call, in the order of recording."""
    outbox = Outbox(max_bytes=10**6)
    buffers = [outbox.track(AttemptBuffer(f"e-{number}", BATCH, 1)) for number in range(5)]
    for buffer in buffers:
        outbox.add(buffer, RUNNING, 0.0)
    assert outbox.due(LINGER, LINGER, 3) == buffers[:3]


def test_a_call_without_a_reply_is_repeated_in_order():
    """Events recorded meanwhile follow those in flight, and are due as early as the oldest of them."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 100.0)
    outbox.send(buffer, "epoch")
    outbox.add(buffer, RESPONDED, 107.0)
    outbox.requeue(buffer)
    assert outbox.due(105.0, LINGER, 10) == [buffer]
    call = outbox.send(buffer, "epoch")
    assert (sequences(call.records), call.mode) == ([2, 3], Mode.NORMAL)


def test_a_duplicate_counts_as_acknowledged():
    """DUPLICATE means that the first call was executed, so the events are acknowledged."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(AppendResult.DUPLICATE))
    assert buffer.acknowledged
    assert sequences(buffer.tail) == [1, 2]


@pytest.mark.parametrize("refusal", [AppendResult.FENCED, AppendResult.CLOSED, AppendResult.CONFLICT])
def test_a_refusal_drops_the_buffer(refusal):
    """Another writer has ended the attempt: the outbox sends nothing more of it and frees its memory."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.add(buffer, COMPLETED, 0.0)
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(AppendResult.OK, refusal))
    assert buffer.lost is refusal
    assert (list(outbox), outbox.bytes, outbox.next_due(LINGER)) == ([], 0, None)


def test_a_paid_answer_of_a_fenced_attempt_is_sent_once_more():
    """An answer that was fenced is sent as late, so that its cost is recorded."""
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


def test_an_acknowledged_answer_is_not_sent_again_as_late():
    """Only fenced events are sent as late, since another body under a recorded key would be a conflict."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.add(buffer, RESPONDED, 0.0)
    outbox.send(buffer, "epoch")
    outbox.add(buffer, COMPLETED, 0.0)
    outbox.apply(buffer, reply(AppendResult.OK, AppendResult.OK))
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(AppendResult.FENCED))
    assert list(outbox) == []


def test_after_an_epoch_change_the_whole_buffer_is_sent_as_one_tail():
    """Acknowledged events, events in flight and new events are sent in one call."""
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


def test_a_tail_without_a_reply_is_sent_again_as_a_tail():
    """Sent as ordinary events, the tail would be fenced, since Redis has lost the attempt."""
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


def test_a_buffer_invalidated_in_flight_is_sent_again_whatever_the_reply():
    """The reply may be from before the data loss."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, RUNNING, 0.0)
    outbox.send(buffer, "epoch")
    outbox.reappend(buffer)
    outbox.apply(buffer, reply(AppendResult.OK))
    assert not buffer.acknowledged
    call = outbox.send(buffer, "epoch 2")
    assert (sequences(call.records), call.mode) == ([1, 2], Mode.TAIL)


def test_a_lower_attempt_is_re_appended_before_a_higher_one():
    """The order does not depend on which was lost first: a higher attempt would fence the lower one."""
    outbox, first = an_outbox()
    second = outbox.track(AttemptBuffer(EVALUATION, BATCH, 2))
    sent_and_acknowledged(outbox, second, *records(history("queued", attempt=2)))
    outbox.reappend(second)
    outbox.reappend(first)
    assert outbox.due(0.0, LINGER, 10) == [first]
    assert outbox.next_due(LINGER) == 0.0
    outbox.send(first, "epoch")
    outbox.requeue(first)
    assert outbox.due(0.0, LINGER, 10) == [first]  # not in one round trip either, which may fail in part
    outbox.send(first, "epoch")
    outbox.apply(first, reply(AppendResult.OK))
    assert outbox.due(0.0, LINGER, 10) == [second]


def test_a_finished_attempt_is_kept_although_a_higher_one_fences_its_tail():
    """Its events may be in the log; another data loss before Postgres has them would need this copy."""
    outbox, buffer = an_outbox()
    sent_and_acknowledged(outbox, buffer, RUNNING, RESPONDED, COMPLETED)
    outbox.reappend(buffer)
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(*[AppendResult.FENCED] * 4))
    assert (buffer.lost, buffer.acknowledged, list(outbox)) == (None, True, [buffer])
    outbox.reappend(buffer)
    assert sequences(outbox.send(buffer, "epoch").records) == [1, 2, 3, 4]


def test_an_unfinished_attempt_is_lost_when_its_tail_is_fenced():
    """Events that the log never acknowledged are not recorded, so the owner loses the attempt."""
    outbox, buffer = an_outbox()
    sent_and_acknowledged(outbox, buffer, RUNNING)
    outbox.add(buffer, COMPLETED, 0.0)
    outbox.reappend(buffer)
    outbox.send(buffer, "epoch")
    outbox.apply(buffer, reply(*[AppendResult.FENCED] * 3))
    assert (buffer.lost, list(outbox)) == (AppendResult.FENCED, [])


def test_a_buffer_without_events_has_no_tail():
    """After an epoch change nothing is sent for an attempt that is owned but not opened."""
    outbox = Outbox(max_bytes=10)
    buffer = outbox.track(AttemptBuffer(EVALUATION, BATCH, 1))
    outbox.reappend(buffer)
    assert buffer.acknowledged
    assert outbox.next_due(LINGER) is None


def test_a_full_outbox_refuses_new_attempts_and_accepts_events():
    """The limit applies to new attempts; events of known attempts are never dropped."""
    outbox, buffer = an_outbox(max_bytes=len(CLAIM.body) + RECORD_OVERHEAD + 1)
    room = [outbox.has_capacity]
    for record in (RUNNING, COMPLETED):
        outbox.add(buffer, record, 0.0)
        room.append(outbox.has_capacity)
    assert (room, buffer.depth) == ([True, False, False], 2)
    outbox.release(buffer)
    assert (outbox.has_capacity, outbox.bytes) == (True, 0)


def test_the_tail_counts_as_memory_until_it_is_released():
    """Acknowledged events are kept, and count towards the memory limit."""
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
def test_a_closed_buffer_is_settled_once_postgres_has_it(mark, settled):
    """The commit mark shows its last sequence or a higher attempt, or the stream has expired."""
    outbox, buffer = an_outbox()
    closing = records(history("retrying", first=3))
    sent_and_acknowledged(outbox, buffer, RUNNING, *closing)
    assert buffer.is_committed_by(mark) is settled


@pytest.mark.parametrize(("mark", "settled"), [((1, 2), False), (None, True), ((2, 0), True)])
def test_an_open_buffer_is_settled_only_when_the_attempt_is_over(mark, settled):
    """A commit mark that covers all its events is not enough; a higher attempt or an expired stream is."""
    outbox, buffer = an_outbox()
    sent_and_acknowledged(outbox, buffer, RUNNING)
    assert buffer.is_committed_by(mark) is settled


def test_a_buffer_without_events_is_not_settled():
    """Its stream is missing because no event was recorded yet."""
    assert not AttemptBuffer("evaluation-1", "batch-1", 1).is_committed_by(None)


def test_an_unacknowledged_buffer_is_never_settled():
    """Events that are unsent, in flight or invalidated must first be acknowledged by the log."""
    outbox, buffer = an_outbox()
    outbox.add(buffer, COMPLETED, 0.0)
    assert not buffer.is_committed_by((1, 4))
    outbox.send(buffer, "epoch")
    assert not buffer.is_committed_by((1, 4))
    outbox.apply(buffer, reply(AppendResult.OK))
    outbox.reappend(buffer)
    assert not buffer.is_committed_by(None)
