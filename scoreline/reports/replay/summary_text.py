"""The heading of a history, its state at a moment, its scorecard and its quarantined entries, as text."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from pydantic import TypeAdapter
from rich.text import Text

from eventlog import payloads as p
from eventlog.lifecycle import ENDED
from eventlog.timeline import Cursor
from projections.folds.scorecard import Scorecard
from scoreline.formatting import counted, excerpt, money, printable, span, stamp
from scoreline.invocation import typed
from scoreline.reports.replay import event_text
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.past_state import PastState
from scoreline.reports.replay.timeline_entry import EntryDisposition, RejectedTimelineEntry, TimelineEntry

LONG = 400
"""Characters of a reason or an error below the timeline."""
LISTED = 20
"""Rejected entries shown; `scoreline quarantine list` has all."""
_SCORES = TypeAdapter(tuple[p.Score, ...])


def heading(history: EvaluationHistory) -> Iterator[Text]:
    """Return the heading: id, batch, case, state, times, arrivals, and the sources that were read."""
    yield Text(f"Evaluation {printable(history.evaluation_id)}", style="bold")
    yield _field("batch", printable(history.batch_id or "unknown"))
    yield _field("case", printable(history.case_id or "unknown"))
    yield _field("state", _state(history))
    yield _field("attempts", str(len(history.attempts)))
    if history.began_at:
        yield _field("began", stamp(history.began_at))
    if history.began_at and history.ended_at:
        took = span(history.ended_at - history.began_at)
        yield _field("ended", f"{stamp(history.ended_at)}, after {took}")
    yield _field("arrivals", _disorder(history))
    yield _field("read from", origin(history))


def state_then(history: EvaluationHistory, then: PastState) -> Iterator[Text]:
    """Return the heading with the state of the evaluation at a moment."""
    name = printable(history.evaluation_id)
    title = f"Evaluation {name} as of {stamp(then.at)}, entry {then.arrived} of {then.of}"
    yield Text(title, style="bold")
    yield _field("batch", printable(history.batch_id or "unknown"))
    yield _field("state", _at(then.cursor))
    yield _field("owner", excerpt(then.owner or "none yet", 60))
    yield _field("answer", _on_record(then.answer))
    waiting = ", ".join(f"{line.event.sequence} {line.event.type}" for line in then.waiting[:LISTED])
    yield _field("waiting", waiting or "nothing")
    if history.postgres.answered:
        yield _field("stored", f"{then.stored} of these entries were in Postgres by then")


def _field(name: str, value: str) -> Text:
    return Text(f"  {name:10}", style="dim").append(value, style="not dim")


def _state(history: EvaluationHistory) -> str:
    card, cursor = history.scorecard, history.cursor
    state = _at(cursor) if cursor.attempt else "nothing stored yet"
    if not history.lines:
        return "unknown: nothing of it could be read as an event"
    if card and card.verdict and cursor.phase in ENDED:
        state = f"{cursor.phase}, verdict {card.verdict}"
    if card and card.bridged and cursor.phase in ENDED:
        state += ", over a bridged gap"
    return state if history.ahead is None else f"{state}; once all is stored: {_at(history.ahead)}"


def _at(cursor: Cursor) -> str:
    return f"{cursor.phase}, at attempt {cursor.attempt}, sequence {cursor.sequence}"


def _on_record(answer: TimelineEntry | None) -> str:
    if answer is None:
        return "none on record"
    attempt, sequence = answer.key
    return (
        f"on record, attempt {attempt}, {sequence} {answer.event.type}: {event_text.describe(answer.event)}"
    )


def _disorder(history: EvaluationHistory) -> str:
    dispositions = Counter(line.disposition for line in history.lines)
    overtaken = sum(1 for line in history.lines if line.overtaken_by)
    parts = [counted(history.arrivals, "entry", "entries")]
    parts += [f"{overtaken} after a successor"] if overtaken else []
    parts += [
        f"{number} {disposition}"
        for disposition, number in dispositions.items()
        if disposition is not EntryDisposition.APPLIED
    ]
    parts += [f"{counted(len(history.bridges), 'gap')} bridged"] if history.bridges else []
    parts += [f"{history.refused} in quarantine"] if history.refused else []
    return ", ".join(parts)


def origin(history: EvaluationHistory) -> str:
    """Return the sources a history was read from, and what they do not have."""
    postgres, redis = history.postgres, history.redis
    beyond = sum(1 for line in history.lines if line.pending)
    if not postgres.queried:
        return "the Redis stream alone: verdicts are computed, not read"
    if postgres.problem:
        return "the Redis stream alone, because Postgres does not answer: verdicts are computed"
    if redis.problem:
        return "Postgres alone, because Redis does not answer: what is not stored yet is not shown"
    if not redis.queried:
        return "Postgres alone"
    if beyond:
        more = counted(beyond, "entry", "entries")
        if not postgres.found:
            return f"the Redis stream, {more}; Postgres has nothing of it yet"
        return f"Postgres, and {more} more in the Redis stream"
    if redis.found:
        return "Postgres; its Redis stream has nothing more"
    if history.cursor.phase in ENDED:
        return "Postgres; its Redis stream has expired, as expected after the end"
    return "Postgres; Redis has no stream of it, though it has not ended"


def outcome(history: EvaluationHistory) -> Iterator[Text]:
    """Return the lines of the scorecard, or of the error the evaluation ended with."""
    card = history.scorecard
    if card is None:
        return
    yield Text()
    not_yet = "" if history.cursor.phase in ENDED else " (not stored yet)"
    if card.status == "completed":
        yield from _completed(history, card, not_yet)
        return
    closing = (n for n in history.lines if n.event.attempt == card.attempt and n.event.type == card.status)
    reason = next(
        (
            event_text.describe(line.event)
            for line in closing
            if line.disposition is EntryDisposition.APPLIED
        ),
        "",
    )
    yield Text(f"{card.status}{not_yet}", style="bold red").append(f"  {reason}", style="not bold")
    yield from _judgements(history, card)


def _completed(history: EvaluationHistory, card: Scorecard, not_yet: str) -> Iterator[Text]:
    style = "bold green" if card.verdict == "passed" else "bold red"
    score = "" if card.score is None else f", score {card.score:g}"
    yield Text(f"Scorecard{not_yet}  ", style="bold").append(f"{card.verdict}{score}", style=style)
    yield from _judgements(history, card)
    yield Text(f"  {', '.join(spent(card))}")


def _judgements(history: EvaluationHistory, card: Scorecard) -> Iterator[Text]:
    for judgement in scores(history, card):
        score = f"{excerpt(judgement.evaluator, 40)}: {event_text.judged(judgement)}"
        yield Text(f"  {score}  {excerpt(judgement.reason, LONG)}".rstrip())


def scores(history: EvaluationHistory, card: Scorecard) -> tuple[p.Score, ...]:
    """Return the scores of the scorecard, or those of `scored` events where it has none."""
    named = _SCORES.validate_json(card.scores)
    return named or tuple(
        line.event.data
        for line in history.lines
        if isinstance(line.event.data, p.Scored)
        and line.event.attempt == card.attempt
        and line.disposition is EntryDisposition.APPLIED
    )


def spent(card: Scorecard) -> Iterator[str]:
    """Return tokens, cost, latency and exit code of a completed evaluation."""
    yield counted(card.tokens, "token")
    yield money(float(card.cost_usd))
    yield f"latency {span(timedelta(milliseconds=card.latency_ms))}"
    if card.exit_code is not None:
        yield f"exit code {card.exit_code}"
    if card.bridged:
        yield "over a bridged gap"


def quarantine(history: EvaluationHistory) -> Iterator[Text]:
    """Return the lines of rejected entries, and the command that prints one."""
    if not history.refusals:
        return
    yield Text()
    yield Text(f"Quarantine ({history.refused})", style="bold")
    for refusal in history.refusals[:LISTED]:
        yield Text(f"  {_refused(refusal, is_kept=_is_kept(history, refusal))}")
    if history.refused > LISTED:
        yield Text(f"  and {history.refused - LISTED} more")
    if any(refusal.quarantined_at for refusal in history.refusals):
        yield Text(f"  See one whole: {typed('quarantine', 'show', 'ID')}", style="dim")


def _is_kept(history: EvaluationHistory, refusal: RejectedTimelineEntry) -> bool:
    return not history.postgres.answered or refusal.quarantined_at is not None


def _refused(refusal: RejectedTimelineEntry, *, is_kept: bool) -> str:
    not_yet = "" if is_kept else "  (not stored yet)"
    detail = excerpt(refusal.detail, LONG)
    return f"{refusal.id[:12]}  arrived {refusal.rank}  {refusal.reason}  {detail}{not_yet}"
