"""The fold of plain histories equals that of all histories, wherever it gives a result."""

from datetime import date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from eventlog import payloads as p
from eventlog.codec import encode
from eventlog.events import EVENT_CLASSES
from eventlog.fast_decoder import FAST_TYPES
from eventlog.timeline import Cursor, replay
from projections.folds.change import EvaluationRow, EventRow, fold
from projections.folds.plain_fold import PlainLog, add_share, canonical_time, plain_fold
from projections.folds.progress import Progress
from projections.folds.refold import refold
from tests.builders import BATCH, EVALUATION, START, arrive, event, history
from tests.disordered import in_order, lives
from tests.unit.eventlog.test_codec_round_trip import PAYLOAD_STRATEGIES

ROW = EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), Cursor())
STEPS = {
    name: made for name, made in zip(EVENT_CLASSES, PAYLOAD_STRATEGIES, strict=True) if name in FAST_TYPES
}


def written(moment: datetime) -> str:
    """Write a time as PostgreSQL does: without zeros at the end of its fraction."""
    whole, _, fraction = moment.strftime("%Y-%m-%d %H:%M:%S.%f").partition(".")
    return f"{whole}.{fraction}".rstrip("0").rstrip(".") + "+00"


def plain_log(events: list[EventRow]) -> PlainLog:
    """Lay out events as one row has them."""
    types, times = " ".join(e.type for e in events), ",".join(written(e.occurred_at) for e in events)
    return PlainLog(types, times, b"[" + b",".join(e.event for e in events) + b"]")


def logged(events: list[Any]) -> list[EventRow]:
    """Store events as a storage worker does."""
    entries = list(arrive(events))
    change = fold(ROW, 0, replay(ROW.cursor, entries), exists=False)
    return sorted([*change.events, *change.side_events], key=lambda row: (row.attempt, row.sequence))


def agrees(events: list[EventRow]) -> bool:
    """Compare both folds; returns whether the history was plain."""
    found = plain_fold(EVALUATION, BATCH, plain_log(events))
    if found is None:
        return False
    exact = refold(ROW, 0, events, {})
    assert exact.broken == []
    change, share = exact.change, Progress()
    add_share(share, found)
    assert (1, found.events - 1, found.phase) == change.after
    assert (found.owner, share) == (change.owner, exact.progress)
    card = change.scorecard
    assert found.card == (card and (*card[4:11],))
    return True


@given(st.data())
def test_it_equals_the_fold_of_every_history(data: st.DataObject) -> None:
    """With any payload in each event, and any step of the lifecycle as the last, or none."""
    words = [
        "queued",
        "provisioning",
        "running",
        "responded",
        *["scored"] * data.draw(st.integers(0, 2)),
        "completed",
    ]
    without_answer = data.draw(st.booleans())
    kept = [w for w in words if not (without_answer and w in {"responded", "scored"})]
    kept = kept[: data.draw(st.integers(1, len(kept)))]
    events = [event(data.draw(STEPS[word]), sequence=place) for place, word in enumerate(kept)]
    agrees(logged(events))


def test_random_lives_are_plain_or_left_to_the_definition() -> None:
    """Retried, failed, cancelled, reopened: those that it takes have the same result."""
    random, taken = Random(7), 0
    for _ in range(300):
        for life in lives(random):
            events = [each for each in in_order([life]) if each.evaluation_id == life[0][0].evaluation_id]
            if events[0].evaluation_id == EVALUATION and len(life) == 1:
                taken += agrees(logged(events))
    assert taken > 20


PLAIN = "queued provisioning running responded scored completed"


def test_an_ordinary_history_is_plain() -> None:
    """Otherwise nothing would be faster."""
    assert agrees(logged(history(PLAIN)))


@pytest.mark.parametrize(
    "altered",
    [
        {"evaluation_id": "other"}, {"batch_id": "other"}, {"sequence": 2}, {"attempt": 2},
        {"occurred_at": "2026-01-01T00:00:00Z"}, {"type": "running"}, {"schema_version": 2},
    ],
    ids=str,
)  # fmt: skip
def test_a_body_that_contradicts_its_row_is_not_plain(altered: dict[str, Any]) -> None:
    """Each column that a body repeats is compared."""
    events = logged(history("queued provisioning"))
    for name, value in altered.items():
        body = encode(history("provisioning", first=1)[0]).decode()
        now = body.replace(f'"{name}":{_json(events, name)}', f'"{name}":{_quoted(value)}')
        assert now != body
        assert (
            plain_fold(EVALUATION, BATCH, plain_log([events[0], events[1]._replace(event=now.encode())]))
            is None
        )


def _json(events: list[EventRow], name: str) -> str:
    known = {"batch_id": BATCH, "schema_version": 3, "evaluation_id": EVALUATION}
    value = known.get(name, getattr(events[1], name, None))
    return _quoted(value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value)


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)


@pytest.mark.parametrize("micros", [0, 1, 100_000, 123_456, 999_990])
def test_times_of_postgres_become_those_of_the_codec(micros: int) -> None:
    """PostgreSQL leaves out zeros at the end of a fraction, the codec keeps them."""
    moment = START + timedelta(microseconds=micros)
    assert canonical_time(written(moment)) == moment.isoformat().replace("+00:00", "Z")


def test_spending_is_counted_once() -> None:
    """The totals of `completed` repeat the answer and its scores."""
    answer = p.Responded(output="4", usage=p.TokenUsage(input_tokens=7, output_tokens=1), cost_usd=0.25)
    result = p.Completed(
        verdict="passed", score=1.0, usage=p.TokenUsage(input_tokens=7, output_tokens=1), cost_usd=0.25
    )
    events = history("queued provisioning running responded completed", responded=answer, completed=result)
    found = plain_fold(EVALUATION, BATCH, plain_log(logged(events)))
    assert found is not None
    assert (found.tokens, found.cost_usd) == (8, Decimal("0.25"))
