"""Appends of many evaluations in one call: each gets the result it would get alone."""

from eventlog.events import Event
from eventlog.log import Append, Mode
from tests.builders import event, history, records
from tests.conformance.eventlog.requests import CONFLICT, DUPLICATE, EPOCH, FENCED, OK, events_of

MANY = [f"evaluation-{number}" for number in range(90)]
"""More appends than one script call takes, on every shard."""


def opening_of(evaluation_id: str) -> Append:
    return Append(evaluation_id, records([event("queued", evaluation_id=evaluation_id)]), "", Mode.OPENING)


def call(*events: Event, epoch: str = "", mode: Mode = Mode.NORMAL) -> Append:
    return Append(events[0].evaluation_id, records(events), epoch, mode)


async def test_every_evaluation_has_its_own_stream_and_response(form):
    """Responses come in the order of the appends, and no event is in the stream of another evaluation."""
    lives = [history("queued provisioning running", evaluation_id=each) for each in MANY]
    await form.log.append([opening_of(each) for each in MANY[::2]])
    replies = await form.log.append([call(*life) for life in lives])
    assert [reply.results for reply in replies] == [(DUPLICATE, OK, OK), (OK, OK, OK)] * 45
    assert [events_of(raw) for raw in await form.log.read(MANY, limit=10)] == lives


async def test_each_claim_of_a_call_returns_its_own_stream(form):
    """A refused claim among them returns no stream."""
    await form.log.append([opening_of(each) for each in MANY[:-1]])
    claims = [event("provisioning", evaluation_id=each, sequence=1) for each in MANY]
    replies = await form.log.append([call(claim, mode=Mode.CLAIM) for claim in claims])
    assert [reply.results for reply in replies] == [(OK,)] * 89 + [(FENCED,)]
    streams = [[event("queued", evaluation_id=claim.evaluation_id), claim] for claim in claims[:-1]]
    assert [events_of(reply.stream) for reply in replies] == [*streams, []]


async def test_appends_of_several_modes_share_a_round_trip(form):
    """Each append has its own mode and epoch, whatever the others of the call have."""
    first, second, third = MANY[:3]
    await form.log.append([opening_of(first)])
    replies = await form.log.append(
        [
            call(event("running", evaluation_id=second, sequence=2)),
            call(event("provisioning", evaluation_id=first, sequence=1), mode=Mode.CLAIM),
            call(event("queued", evaluation_id=third), epoch="of-another-life"),
        ]
    )
    assert [reply.results for reply in replies] == [(FENCED,), (OK,), (EPOCH,)]
    assert [len(reply.stream) for reply in replies] == [0, 2, 0]


async def test_appends_of_one_evaluation_keep_their_order(form):
    """The append that is listed first is written first, whatever its mode."""
    queued, claim, running = history("queued provisioning running", evaluation_id=MANY[0])
    other = event("running", evaluation_id=MANY[0], sequence=2, source="rival")
    replies = await form.log.append(
        [call(running, mode=Mode.TAIL), call(queued), call(claim, mode=Mode.CLAIM), call(other)]
    )
    assert [reply.results for reply in replies] == [(OK,), (OK,), (OK,), (CONFLICT,)]
    assert events_of((await form.log.read(MANY[:1], limit=10))[0]) == [running, queued, claim, other]
