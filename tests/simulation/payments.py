"""No call is paid twice: the invariant that is checked whenever a target is called.

A second call for an evaluation is wrong where an answer is recorded: in its opening, in the stream that
its claim returned, or with a live writer that had the grace to re-append it after Redis was lost.
"""

from eventlog import payloads as p
from eventlog.codec import Entry, decode_body, read_entry
from eventlog.events import EventKey
from eventlog.lifecycle import CLOSING_TYPES
from tests.simulation.coordinator import GRACE
from tests.simulation.process import Life
from tests.simulation.world import Acknowledgement, Harm, World

ENDINGS = CLOSING_TYPES - {"retrying"}


def check_payment(life: Life, key: str) -> None:
    """Check that the requested answer is not recorded yet."""
    world, asked = life.world, life.world.knowledge.asked.setdefault(key, set())
    claims = [claim for claim in _claims(life, key) if claim not in asked]
    if not claims:
        world.violate(Harm.DOUBLED, f"{life.name} asks for {key} twice in one attempt")
        return
    attempt = claims[-1]
    asked.add(attempt)
    world.seen["asked again"] += len(asked) > 1
    world.log_line(life.name, f"  asks for {key} {attempt}")
    if not _has_its_turn(world, key):
        world.violate(Harm.VIOLATION, f"{life.name} asks for {key}, whose turn has not come")
    for what in (
        _in_opening(world, key, attempt),
        _in_stream(world, key, attempt),
        _held(world, key, attempt),
    ):
        if what:
            world.violate(Harm.DOUBLED, f"{life.name} asks for {key} {attempt}, whose answer is {what}")


def check_judging(life: Life, key: str, evaluator: str, output: str) -> None:
    """Check that the requested score is not in the opening."""
    opening = decode_body(life.world.tables.events[key, _claims(life, key)[-1], 0].event).data
    if not isinstance(opening, p.Queued) or opening.answer is None or opening.answer.output != output:
        return
    if any(score.evaluator == evaluator for score in opening.scores):
        life.world.violate(Harm.DOUBLED, f"{life.name} has {evaluator} judge {key} again")


def _has_its_turn(world: World, key: str) -> bool:
    """Whether its predecessor in the group has ended at least once."""
    link = world.ledger._links.get(key)
    before = world.tables.stored_of(link.follows).values() if link else ()
    return link is None or any(row.type in ENDINGS for row in before)


def _claims(life: Life, key: str) -> list[int]:
    ack = life.world.knowledge.acknowledged
    return [t.key[0] for t in ack if t.writer == life.name and t.evaluation_id == key and t.key[1] == 1]


def _in_opening(world: World, key: str, attempt: int) -> str:
    opening = decode_body(world.tables.events[key, attempt, 0].event).data
    return "in its opening" if isinstance(opening, p.Queued) and opening.answer else ""


def _in_stream(world: World, key: str, attempt: int) -> str:
    read = [read_entry(key, raw) for raw in world.redis.stream(key).entries]
    first: dict[EventKey, Entry] = {}
    for entry in read:
        if isinstance(entry, Entry):
            first.setdefault(entry.key, entry)
            if entry.key == (attempt, 1):
                answers = [each for each in first.values() if isinstance(each.event.data, p.Responded)]
                return f"in the stream, of attempt {answers[0].event.attempt}" if answers else ""
    return ""


def _held(world: World, key: str, attempt: int) -> str:
    for ack in world.knowledge.acknowledged:
        if ack.evaluation_id == key and ack.key[0] < attempt and _was_to_be_waited_for(world, ack, attempt):
            return f"held by {ack.writer}, of attempt {ack.key[0]}"
    return ""


def _was_to_be_waited_for(world: World, ack: Acknowledgement, attempt: int) -> bool:
    """Whether Redis was lost, the writer lives, and the attempt was opened within the grace."""
    data = decode_body(ack.body).data
    if not isinstance(data, p.Responded) or data.cached or ack.losses == world.redis.losses:
        return False
    knowledge, opened_at = world.knowledge, world.knowledge.opened[ack.evaluation_id, attempt]
    refused_at = knowledge.refused.get((ack.writer, ack.evaluation_id, ack.key[0]), opened_at)
    if ack.writer in knowledge.dead or refused_at < opened_at:
        return False
    losses = [at for at in world.redis.lost_times if ack.at < at <= opened_at]
    return bool(losses) and opened_at - losses[-1] < GRACE.total_seconds()
