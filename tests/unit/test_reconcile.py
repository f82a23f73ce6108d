"""What to do about an evaluation that has not moved: every situation, against what must hold of all."""

from collections.abc import Callable, Iterator
from dataclasses import fields, replace
from itertools import product

import pytest

from coordinator.reconcile import Next, Owner, Sight, Told, reconcile
from eventlog.lifecycle import ENDED, Phase

BOOLEANS = [field.name for field in fields(Sight) if field.type is bool]
OPENS = {Next.RETRY, Next.LOST}


def every_sight() -> Iterator[Sight]:
    """Go through all there is to see, possible or not."""
    for phase, told, owner in product(Phase, Told, Owner):
        for values in product([False, True], repeat=len(BOOLEANS)):
            yield Sight(phase, told, owner, **dict(zip(BOOLEANS, values, strict=True)))


EVERY_SIGHT = list(every_sight())


def those_where(what: set[Next]) -> list[Sight]:
    """Choose the situations in which one of these is done."""
    return [seen for seen in EVERY_SIGHT if reconcile(seen) in what]


def test_every_situation_is_among_them() -> None:
    """Ten phases, three epochs, three owners, six questions; and each answer is given somewhere."""
    assert len(EVERY_SIGHT) == 10 * 3 * 3 * 2**6
    assert {reconcile(seen) for seen in EVERY_SIGHT} == set(Next)


@pytest.mark.parametrize(
    "untouchable",
    [
        pytest.param(lambda seen: seen.phase in ENDED, id="ended"),
        pytest.param(lambda seen: seen.told is Told.NEVER, id="nobody was told"),
        pytest.param(lambda seen: seen.is_ahead, id="the stream is ahead"),
    ],
)
def test_some_are_never_touched(untouchable: Callable[[Sight], bool]) -> None:
    """What has ended, what nobody was told of, what the storage worker has yet to see."""
    assert {reconcile(seen) for seen in EVERY_SIGHT if untouchable(seen)} == {Next.WAIT}


def test_nothing_of_an_earlier_epoch_is_opened_before_the_epoch_has_held() -> None:
    """An owner may be putting its attempt back, with an answer that was paid for."""
    assert all(seen.is_settled for seen in those_where(OPENS) if seen.told is Told.BEFORE)


def test_what_was_published_in_the_current_epoch_opens_at_once() -> None:
    """No write of it can have been lost since: a coordinator that has just started waits for no grace."""
    published_now = [seen for seen in EVERY_SIGHT if seen.told is Told.NOW]
    for seen in published_now:
        assert reconcile(replace(seen, is_settled=False)) is reconcile(replace(seen, is_settled=True))


def test_the_living_are_left_alone() -> None:
    """Whatever else is the matter; but an attempt that asked to be tried again has no owner any more."""
    touched = [
        seen for seen in EVERY_SIGHT if seen.owner is Owner.AT_WORK and reconcile(seen) is not Next.WAIT
    ]
    assert {seen.phase for seen in touched} == {Phase.RETRYING}
    assert {reconcile(seen) for seen in touched} == {Next.RETRY}


def test_a_retry_is_opened_when_it_is_due_and_then_only() -> None:
    """It needs neither owner nor queue."""
    assert all(seen.phase is Phase.RETRYING and seen.is_due for seen in those_where({Next.RETRY}))
    due = [
        seen
        for seen in EVERY_SIGHT
        if seen.phase is Phase.RETRYING and seen.is_due and seen.is_settled and not seen.is_ahead
    ]
    assert {reconcile(seen) for seen in due if seen.told is not Told.NEVER} == {Next.RETRY}


def test_lost_means_that_nobody_would_end_it() -> None:
    """Its owner is gone, or its claim, or the epoch in which it was opened."""
    for seen in those_where({Next.LOST}):
        assert seen.owner is Owner.GONE or seen.claimed_in_row or seen.told is Told.BEFORE
        assert seen.phase is not Phase.RETRYING


@pytest.mark.parametrize("what", [Next.PUBLISH, Next.ENQUEUE])
def test_the_same_attempt_is_told_of_again_only_if_nobody_can_have_it(what: Next) -> None:
    """In the epoch of now, unclaimed in the stream and in Postgres."""
    for seen in those_where({what}):
        assert seen.told is Told.NOW
        assert seen.owner is Owner.NOBODY
        assert not seen.claimed_in_row
        assert seen.has_opening is (what is Next.ENQUEUE)


def test_a_task_is_added_only_where_none_is_left() -> None:
    """While the queue holds anything of the batch, the task may be on its way."""
    assert all(seen.is_drained for seen in those_where({Next.ENQUEUE}))


def test_nothing_waits_for_ever() -> None:
    """Once all is stored, held, due and drained, only the ended, the untold and the owned wait."""
    at_rest = [
        seen
        for seen in EVERY_SIGHT
        if not seen.is_ahead and seen.is_settled and seen.is_due and seen.is_drained
    ]
    for seen in at_rest:
        if reconcile(seen) is Next.WAIT:
            assert seen.phase in ENDED or seen.told is Told.NEVER or seen.owner is Owner.AT_WORK


def test_waiting_for_the_epoch_changes_when_and_not_what() -> None:
    """What is opened once the epoch has held was waited for until then, and nothing else was done."""
    for seen in those_where(OPENS):
        if seen.told is Told.BEFORE:
            assert reconcile(replace(seen, is_settled=False)) is Next.WAIT


QUEUED = Sight(Phase.QUEUED, Told.NOW)
RUNNING = Sight(Phase.RUNNING, Told.NOW, Owner.AT_WORK, claimed_in_row=True)
ALONE = replace(RUNNING, owner=Owner.NOBODY)
FORGOTTEN = replace(ALONE, told=Told.BEFORE)
STORY = [
    ("it waits in Postgres for its window", replace(QUEUED, told=Told.NEVER), Next.WAIT),
    ("its task is on its way", QUEUED, Next.WAIT),
    ("its window was opened, and nobody told", replace(QUEUED, has_opening=False), Next.PUBLISH),
    ("it was published, and its task was not", replace(QUEUED, is_drained=True), Next.ENQUEUE),
    ("it was claimed, and Postgres does not know yet", replace(QUEUED, owner=Owner.AT_WORK), Next.WAIT),
    ("it was claimed by one who died at once", replace(QUEUED, owner=Owner.GONE), Next.LOST),
    ("its owner works", RUNNING, Next.WAIT),
    ("its owner is dead or hung", replace(RUNNING, owner=Owner.GONE), Next.LOST),
    ("its owner is dead, and had closed it", replace(RUNNING, owner=Owner.GONE, is_ahead=True), Next.WAIT),
    ("Redis was lost a moment ago", replace(FORGOTTEN, is_settled=False), Next.WAIT),
    ("Redis was lost, and its owner came back", replace(RUNNING, told=Told.BEFORE), Next.WAIT),
    ("Redis was lost, and its owner did not come back", FORGOTTEN, Next.LOST),
    ("Redis was lost before it was claimed", replace(QUEUED, told=Told.BEFORE), Next.LOST),
    ("its claim alone was lost", ALONE, Next.LOST),
    ("it is to be tried again, later", Sight(Phase.RETRYING, Told.NOW, is_due=False), Next.WAIT),
    ("it is to be tried again, now", Sight(Phase.RETRYING, Told.NOW), Next.RETRY),
    ("it has ended", Sight(Phase.FAILED, Told.BEFORE, Owner.GONE), Next.WAIT),
]  # fmt: skip


@pytest.mark.parametrize(("what_happened", "seen", "what_follows"), STORY, ids=[row[0] for row in STORY])
def test_a_story(what_happened: str, seen: Sight, what_follows: Next) -> None:
    """The table atop the module, as it is lived through."""
    assert reconcile(seen) is what_follows, what_happened
