"""The storage worker: what the stream adds to the row, committed by compare-and-set (rules 19 to 21)."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from eventlog.lifecycle import CLOSED, CLOSING_TYPES, TRANSITIONS, Phase
from tests.protocol_model.faults import Budget, Fault
from tests.protocol_model.invariants import broken_by_applying
from tests.protocol_model.moves import Actor, Move, Setup, step
from tests.protocol_model.rules import Rule, Rules
from tests.protocol_model.world import Applying, Event, Expiring, Postgres, Stream, Worker


class Seen(NamedTuple):
    """What a storage worker sees."""

    setup: Setup
    me: Worker
    postgres: Postgres
    stream: Stream
    budget: Budget


def storage_worker(setup: Setup) -> Actor:
    """Cast a storage worker; where there is one only, reading and committing may be one step."""
    own = f"worker_{setup.slot}"
    at_once = setup.scenario.storage_workers == 0
    moves = _reads_and_commits if at_once else _works
    twins = ("worker_0", "worker_1") if setup.slot else ()
    sees = (own, "postgres", "stream", "budget")
    return Actor(sees, lambda *parts: moves(Seen(setup, *parts)), rests_while_first=twins)


def plan(postgres: Postgres, stream: Stream, rules: Rules, *, bridging: bool) -> Applying:
    """Walk from the row as far as the stream leads."""
    attempt, sequence, phase = _start(postgres, stream, rules)
    known = stream.attempt(attempt)
    inserts: list[Event] = []
    while phase not in CLOSED and (event := _next(known, sequence, phase, rules, bridging=bridging)):
        sequence, phase = event.sequence, _phase_after(phase, event)
        inserts.append(event)
    return Applying(postgres[:2], (attempt, sequence, phase), tuple(inserts), over_a_gap=bridging)


def _start(postgres: Postgres, stream: Stream, rules: Rules) -> tuple[int, int, Phase]:
    if Rule.ROWS_ATTEMPT_ONLY in rules or stream.newest in {0, postgres.attempt}:
        return postgres[:3]
    return (stream.newest, 0, Phase.QUEUED)


def _next(
    known: dict[int, Event], sequence: int, phase: Phase, rules: Rules, *, bridging: bool
) -> Event | None:
    following = known.get(sequence + 1)
    if following and following.type in TRANSITIONS[phase]:
        return following
    beyond = sorted(number for number in known if number > sequence)
    if Rule.CONTIGUOUS_LEGAL_PREFIX not in rules and beyond:
        return known[beyond[0]]
    closing = [number for number in beyond if known[number].type in CLOSING_TYPES]
    return known[closing[0]] if bridging and closing else None


def _phase_after(phase: Phase, event: Event) -> Phase:
    """A closing event beyond a gap is applied by its name, as the timeline does."""
    return TRANSITIONS[phase].get(event.type) or Phase(event.type)


def _plans(seen: Seen) -> Iterator[Applying]:
    """What to apply: the contiguous prefix, or if there is none, what lies beyond a gap."""
    rules = seen.setup.rules
    bridging = (False, True) if Rule.GAP_IS_BRIDGED in rules else (False,)
    plans = (plan(seen.postgres, seen.stream, rules, bridging=over) for over in bridging)
    yield from islice((planned for planned in plans if planned.inserts), 1)


def _reads_and_commits(seen: Seen) -> Iterator[Move]:
    for planned in _plans(seen):
        yield _commits(seen, planned)
    if _may_expire(seen):
        yield step(seen, "lets the stream expire", stream=seen.stream._replace(expiring=True))


def _works(seen: Seen) -> Iterator[Move]:
    match seen.me:
        case Applying():
            yield _commits_if_first(seen, seen.me)
        case Expiring(attempt):
            yield _expires_if_ended(seen, attempt)
        case None:
            yield from _reads(seen)
    if seen.me and Fault.STORAGE_CRASH in seen.budget:
        yield step(seen, "crashes", me=None, fault=Fault.STORAGE_CRASH)


def _reads(seen: Seen) -> Iterator[Move]:
    for planned in _plans(seen):
        yield step(seen, f"reads up to {_place(planned)}", me=planned)
    if _may_expire(seen):
        yield step(seen, "reads the end", me=Expiring(seen.postgres.attempt))


def _may_expire(seen: Seen) -> bool:
    """Rule 21, from what the worker has read; the script looks again."""
    ended = seen.setup.scenario.expiry and seen.postgres.ended
    waits = seen.stream.entries and not seen.stream.expiring
    return bool(ended and waits and _is_not_newer(seen, seen.postgres.attempt))


def _is_not_newer(seen: Seen, attempt: int) -> bool:
    return seen.stream.newest <= attempt or Rule.EXPIRE_UNLESS_NEWER not in seen.setup.rules


def _expires_if_ended(seen: Seen, attempt: int) -> Move:
    if not (seen.stream.entries and _is_not_newer(seen, attempt)):
        return step(seen, "leaves the stream to a newer attempt", me=None)
    return step(seen, "lets the stream expire", me=None, stream=seen.stream._replace(expiring=True))


def _commits_if_first(seen: Seen, planned: Applying) -> Move:
    postgres, rules = seen.postgres, seen.setup.rules
    if Rule.COMPARE_AND_SET in rules and postgres[:2] != planned.before:
        return step(seen, "finds the row moved, reads again", me=None)
    keys = {event.key for event in postgres.log}
    if Rule.UNIQUE_KEY in rules and any(event.key in keys for event in planned.inserts):
        return step(seen, "finds a key taken, reads again", me=None)
    return _commits(seen, planned)


def _commits(seen: Seen, planned: Applying) -> Move:
    attempt, sequence, phase = planned.after
    log = seen.postgres.log | set(planned.inserts)
    following = seen.postgres._replace(attempt=attempt, sequence=sequence, phase=phase, log=log)
    broken = broken_by_applying(seen.postgres, planned, following)
    return step(seen, f"commits {_place(planned)}", me=None, postgres=following, broken=broken)


def _place(planned: Applying) -> str:
    attempt, sequence, phase = planned.after
    return f"({attempt}, {sequence}) {phase}" + " over a gap" * planned.over_a_gap
