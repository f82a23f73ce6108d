"""What every form of the board and of the attendance does."""

from dataclasses import replace

from taskqueue.board import BatchState, Listing
from taskqueue.presence import LIFETIME, Presence
from tests.conformance.task_queue_forms import BATCH, OTHER

ALICE = Presence("alice-1", "alice", host="there", pid=7, slots=4, busy=2, project="p")
BOB = Presence("bob-1", "bob")


# The board.


async def test_an_announced_batch_is_listed_with_its_spec(queues):
    """All that was said of it comes back as it was."""
    listing = Listing(BATCH, BatchState.PAUSED, priority=7, project="p", channels=("scoring", "target-0"))
    await queues.board.announce(listing, b'{"spec": 1}')
    await queues.board.announce(Listing(OTHER), b"{}")
    assert sorted(await queues.board.listings(), key=lambda each: each.batch_id) == [
        listing,
        Listing(OTHER),
    ]
    assert await queues.board.spec(BATCH) == b'{"spec": 1}'


async def test_a_listing_may_change(queues):
    """The last word counts, and the batch is listed once."""
    await queues.board.announce(Listing(BATCH), b"1")
    await queues.board.announce(Listing(BATCH, BatchState.STOPPED), b"2")
    assert await queues.board.listings() == [Listing(BATCH, BatchState.STOPPED)]
    assert await queues.board.spec(BATCH) == b"2"


async def test_a_batch_that_is_taken_down_leaves_nothing_behind(queues):
    """Listing, spec and contexts go; taking it down again is harmless."""
    await queues.board.announce(Listing(BATCH), b"{}")
    await queues.board.put_contexts(BATCH, {"e1": b"before"})
    for _ in range(2):
        await queues.board.take_down(BATCH)
        assert await queues.board.listings() == []
        assert await queues.board.spec(BATCH) is None
        assert await queues.board.contexts(BATCH, ["e1"]) == [None]
        assert await queues.left_behind() == set()


async def test_lanes_are_found_by_line(queues):
    """What an executor says last of a line counts, and all of it goes with the batch."""
    assert await queues.board.lanes(BATCH) == {}
    await queues.board.note_lanes(BATCH, {"scoring": ["openai:a:judge"], "target-0": ["one", "two"]})
    await queues.board.note_lanes(OTHER, {})
    assert await queues.board.lanes(BATCH) == {"scoring": ("openai:a:judge",), "target-0": ("one", "two")}
    assert await queues.board.lanes(OTHER) == {}
    await queues.board.take_down(BATCH)
    assert await queues.board.lanes(BATCH) == {}
    assert await queues.left_behind() == set()


async def test_contexts_are_found_by_evaluation(queues):
    """Each in the place it was asked for; None where there is none; a later word replaces a former."""
    await queues.board.put_contexts(BATCH, {"e1": b"one", "e2": b"two"})
    await queues.board.put_contexts(BATCH, {"e2": b"second", "e3": b"\x00\xff"})
    await queues.board.put_contexts(BATCH, {})
    assert await queues.board.contexts(BATCH, ["e3", "e0", "e2", "e1"]) == [
        b"\x00\xff",
        None,
        b"second",
        b"one",
    ]
    assert await queues.board.contexts(OTHER, ["e1"]) == [None]
    assert await queues.board.contexts(BATCH, []) == []


async def test_a_lost_board_can_be_written_again(queues):
    """An empty board is empty, not broken."""
    await queues.board.announce(Listing(BATCH), b"{}")
    await queues.lose_everything()
    assert await queues.board.listings() == []
    await queues.board.announce(Listing(BATCH), b"{}")
    assert await queues.board.listings() == [Listing(BATCH)]


# The attendance.


async def test_who_beats_is_alive(queues):
    """Only those that were asked for are named; all that was said of them comes back."""
    assert await queues.attendance.live(["alice-1"]) == set()
    assert await queues.attendance.present() == []
    await queues.attendance.beat(ALICE)
    await queues.attendance.beat(BOB)
    assert await queues.attendance.live(iter(["alice-1", "carol-1"])) == {"alice-1"}
    assert await queues.attendance.live([]) == set()
    present = await queues.attendance.present()
    assert sorted(present, key=lambda each: each.name) == [ALICE, BOB]


async def test_the_last_beat_counts(queues):
    """An executor is present once, as it last described itself."""
    await queues.attendance.beat(ALICE)
    await queues.attendance.beat(replace(ALICE, busy=4))
    assert await queues.attendance.present() == [replace(ALICE, busy=4)]


async def test_who_leaves_is_gone_at_once(queues):
    """Good order spares others the wait; leaving again is harmless."""
    await queues.attendance.beat(ALICE)
    for _ in range(2):
        await queues.attendance.leave("alice-1")
        assert await queues.attendance.live(["alice-1"]) == set()
        assert await queues.attendance.present() == []


async def test_who_falls_silent_is_dead(queues):
    """Nobody has to say so: the lifetime passes, while others beat on."""
    await queues.attendance.beat(ALICE)
    await queues.attendance.beat(BOB)
    await queues.pass_time(LIFETIME * 0.75)
    await queues.attendance.beat(BOB)
    assert await queues.attendance.live(["alice-1", "bob-1"]) == {"alice-1", "bob-1"}
    await queues.pass_time(LIFETIME / 4)
    assert await queues.attendance.live(["alice-1", "bob-1"]) == {"bob-1"}
    assert await queues.attendance.present() == [BOB]


async def test_an_executor_comes_back_after_everything_was_lost(queues):
    """The next beat is enough."""
    await queues.attendance.beat(ALICE)
    await queues.lose_everything()
    assert await queues.attendance.present() == []
    await queues.attendance.beat(ALICE)
    assert await queues.attendance.present() == [ALICE]
