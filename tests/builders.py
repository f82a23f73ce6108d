"""Events, entries and histories in a few words, so that a test reads as what it is about.

history("queued provisioning running completed")      -> events of attempt 1, numbered from 0
history("queued:operator provisioning", attempt=2)     -> an opening with its reason
history("running completed", first=2)                  -> the rest of an attempt
history("queued", queued=p.Queued(case=...))           -> a payload of one's own, by type
arrive(events)                                         -> entries, in this order of arrival
wire(events)                                           -> the same as raw stream entries
records(events)                                        -> ready to append
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from eventlog import payloads as p
from eventlog.codec import Entry, RawEntry, encode, fields_of, make_event
from eventlog.events import Event
from eventlog.log import EncodedEvent

START = datetime(2026, 1, 1, tzinfo=UTC)
EVALUATION = "evaluation-1"
BATCH = "batch-1"
FIRST_ARRIVAL_MS = 1_700_000_000_000

CASE = p.Case(id="case-1", input="2 + 2", expected="4")
FAULT = p.ErrorDetail(kind="transient", message="the model looked away")

PAYLOADS: dict[str, p.AnyPayload] = {
    "queued": p.Queued(case=CASE),
    "cancelled": p.Cancelled(by="operator"),
    "provisioning": p.Provisioning(executor="executor-1", nonce="nonce-1"),
    "running": p.Running(target="simulated", process="4242"),
    "responded": p.Responded(
        output="4", usage=p.TokenUsage(input_tokens=7, output_tokens=1), cost_usd=0.001
    ),
    "scored": p.Scored(evaluator="exact", score=1.0, passed=True),
    "completed": p.Completed(verdict="passed", score=1.0, exit_code=0),
    "retrying": p.Retrying(error=FAULT, retry_at=START + timedelta(hours=1)),
    "failed": p.Failed(error=p.ErrorDetail(kind="permanent", message="no such model")),
    "timed_out": p.TimedOut(limit="task", seconds=60.0),
}
"""A plausible payload for each event type."""


def payload(word: str) -> p.AnyPayload:
    """Return the payload a word stands for; `queued:operator` is an opening with its reason."""
    event_type, _, reason = word.partition(":")
    if reason:
        return p.Queued(case=CASE, reason=p.OpeningReason(reason))
    return PAYLOADS[event_type]


def event(
    data: p.AnyPayload | str,
    *,
    evaluation_id: str = EVALUATION,
    batch_id: str = BATCH,
    attempt: int = 1,
    sequence: int = 0,
    source: str = "test",
) -> Event:
    """Make one event, of a payload or of the word for one."""
    return make_event(
        payload(data) if isinstance(data, str) else data,
        evaluation_id=evaluation_id,
        batch_id=batch_id,
        attempt=attempt,
        sequence=sequence,
        occurred_at=START + timedelta(minutes=attempt, seconds=sequence),
        source=source,
    )


def history(
    words: str,
    *,
    evaluation_id: str = EVALUATION,
    batch_id: str = BATCH,
    attempt: int = 1,
    first: int = 0,
    **own_payloads: p.AnyPayload,
) -> list[Event]:
    """Make the consecutive events of one attempt; a payload given by its type replaces the usual one."""
    return [
        event(
            own_payloads.get(word, word),
            evaluation_id=evaluation_id,
            batch_id=batch_id,
            attempt=attempt,
            sequence=sequence,
        )
        for sequence, word in enumerate(words.split(), start=first)
    ]


def arrive(events: Iterable[Event], *, first_ms: int = FIRST_ARRIVAL_MS) -> list[Entry]:
    """Let events arrive in the order given, a millisecond apart."""
    return [Entry(b"%d-0" % ms, event, encode(event)) for ms, event in enumerate(events, start=first_ms)]


def wire(events: Iterable[Event], *, first_ms: int = FIRST_ARRIVAL_MS) -> list[RawEntry]:
    """Let events arrive as the raw entries that a stream holds."""
    return [raw_entry(entry.event, entry_id=entry.id) for entry in arrive(events, first_ms=first_ms)]


def raw_entry(event: Event, /, *, entry_id: bytes = b"1-0", **instead: bytes) -> RawEntry:
    """Lay an event out as a stream entry; keywords replace single fields, `event=b"garbage"` the body."""
    laid_out = {**fields_of(event, encode(event)), **instead}
    fields: list[bytes] = []
    for name, value in laid_out.items():
        fields += (name.encode(), value if isinstance(value, bytes) else str(value).encode())
    return entry_id, fields


def records(events: Iterable[Event]) -> Sequence[EncodedEvent]:
    """Make events ready to append."""
    return [EncodedEvent(event, encode(event)) for event in events]
