"""The full exchange of an evaluation: the prompt as sent, the answer, and its scores.

The prompt is not stored. It is rendered again from the stored case, the batch's template and, in a serial
group, the answers of earlier evaluations: the same values that the executor rendered it from.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from eventlog import payloads as p
from projections.database.connection import Connection, one_snapshot
from projections.database.errors import UnknownBatch
from projections.queries.batches import read_snapshot
from projections.queries.export import export_rows
from scoreline.formatting import printable
from scoreline.reports.export_record import Record, as_text, make_record
from scoreline.reports.labels import variant_labels
from scoreline.reports.replay.history import EvaluationHistory

NOT_READ = "not known: the batch's template is in Postgres, which was not read"
EXTERNAL = "not known: the batch was not submitted here, so its template is not on record"
NO_FIELD = "not known: the template names a field that is not on record"
KNOWN = "not sent: the answer was recorded or cached before"
AFTER_TURNS = "sent after the earlier turns of its conversation"


@dataclass(frozen=True, slots=True)
class Exchange:
    """The prompt of an evaluation, and its answer."""

    record: Record | None
    note: str = ""
    """A remark on the prompt: why it is not known, was not sent, or not sent alone."""

    @property
    def prompt(self) -> str | None:
        """The prompt, where it can be rendered."""
        return self.record.rendered_prompt if self.record else None


async def read_exchange(conn: Connection | None, history: EvaluationHistory) -> Exchange:
    """Read the prompt and the answer of an evaluation."""
    if conn is None or history.batch_id is None:
        return Exchange(None, NOT_READ)
    async with one_snapshot(conn):
        try:
            snapshot = await read_snapshot(conn, history.batch_id)
        except UnknownBatch:
            return Exchange(None, NOT_READ)
        labels = variant_labels(snapshot.spec)
        rows = [row async for row in export_rows(conn, history.batch_id, only=[history.evaluation_id])]
    record = make_record(rows[0], labels) if rows else None
    return Exchange(record, _note(history, record, is_external=snapshot.spec is None))


def _note(history: EvaluationHistory, record: Record | None, *, is_external: bool) -> str:
    openings = [line.event.data for line in history.lines if isinstance(line.event.data, p.Queued)]
    if is_external:
        return EXTERNAL
    if record is None or record.rendered_prompt is None:
        return NO_FIELD
    if openings and openings[0].answer is not None:
        return KNOWN
    return AFTER_TURNS if openings and openings[0].in_group else ""


def exchange_lines(exchange: Exchange) -> Iterator[Text]:
    """Return the prompt as sent, the answer and the scores as lines; nothing is cut."""
    record = exchange.record
    note = f" ({exchange.note})" if exchange.note else ""
    yield from _part(
        f"Prompt as sent{note}" if exchange.note != KNOWN else f"Prompt{note}", exchange.prompt
    )
    if record is None:
        return
    yield from _part("Expected", as_text(record.expected))
    yield from _part("Answer", record.output if record.output is not None else "(none on record)")
    for score in record.scores:
        yield from _part(f"{printable(score.evaluator)}: {score.score:g}", score.reason or None)


def _part(title: str, text: str | None) -> Iterator[Text]:
    yield Text()
    yield Text(title, style="bold")
    if text is not None:
        yield Text(printable(text))


def exchange_document(exchange: Exchange) -> dict[str, Any]:
    """Return an exchange as JSON."""
    record = exchange.record
    return {
        "prompt": exchange.prompt,
        "prompt_note": exchange.note or None,
        "input": record.input if record else None,
        "expected": record.expected if record else None,
        "output": record.output if record else None,
    }
