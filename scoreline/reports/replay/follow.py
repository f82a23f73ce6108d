"""`scoreline replay --follow`: prints each entry as it arrives, and each change of its disposition."""

import asyncio
import json
from time import monotonic
from typing import Any

from rich.console import Console
from rich.text import Text

from eventlog.backoff import Backoff
from eventlog.lifecycle import ENDED
from scoreline.formatting import printable
from scoreline.reports.replay.document import document
from scoreline.reports.replay.follow_updates import UpdateTracker
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.lookup import look_up, unknown
from scoreline.reports.replay.sources import UNAVAILABLE, Sources
from scoreline.reports.replay.styles import STYLES
from scoreline.reports.replay.summary_text import heading, outcome

FIRST_EVENT_TIMEOUT = 1.0
"""Seconds to wait for the first event of an unknown evaluation."""
POLL_INTERVAL = 0.5
"""Seconds between queries to Postgres, while the stream has no new entry."""
SHORT_POLL_INTERVAL = 0.1
"""The same while entries of the stream are not stored yet."""


async def follow(sources: Sources, text: str, console: Console, *, as_json: bool) -> None:
    """Print all entries, then updates until the evaluation has ended and is stored."""
    history, tracker = await _first(sources, text), UpdateTracker()
    if not as_json:
        _print_note(f"Following {printable(history.evaluation_id)}; Ctrl-C stops watching, nothing else.")
    while True:
        for update in tracker.updates(history):
            if as_json:
                _print_json(update.json)
            else:
                console.print(
                    Text(update.text, style=STYLES[update.disposition] if update.disposition else "yellow"),
                    soft_wrap=True,
                )
        if _is_over(history):
            break
        history = await _next(sources, history)
    _print_end(history, console, as_json=as_json)


def _is_over(history: EvaluationHistory) -> bool:
    """Whether no update can follow: the evaluation has ended, and all its entries are stored."""
    return history.cursor.phase in ENDED and history.ahead is None and history.is_stored


async def _first(sources: Sources, text: str) -> EvaluationHistory:
    """Return the history of the evaluation; waits for its first event, which may be in flight."""
    until = monotonic() + FIRST_EVENT_TIMEOUT
    while (resolved := await look_up(sources, text)) is None:
        if monotonic() > until:
            raise await unknown(sources, text)
        await asyncio.sleep(SHORT_POLL_INTERVAL)
    return resolved.history


async def _next(sources: Sources, history: EvaluationHistory) -> EvaluationHistory:
    """Wait for a new entry or the next poll, and read the history; retries through any outage."""
    key, backoff, is_lost = history.evaluation_id, Backoff(longest=2.0), False
    while True:
        try:
            await sources.wait(key, seconds=POLL_INTERVAL if history.is_stored else SHORT_POLL_INTERVAL)
            following = await sources.history(key)
        except UNAVAILABLE:
            if not is_lost:
                _print_note("A server does not answer; waiting for it.")
            is_lost = True
            await asyncio.sleep(backoff.next())
            continue
        finally:
            _raise_if_cancelled()
        if is_lost:
            _print_note("It answers again.")
        return following


def _raise_if_cancelled() -> None:
    """Raise a cancellation that `wait_for` swallowed, as it may before Python 3.12."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


def _print_end(history: EvaluationHistory, console: Console, *, as_json: bool) -> None:
    if as_json:
        _print_json({"kind": "end", **document(history)})
        return
    for line in (Text(), *heading(history), *outcome(history)):
        console.print(line, soft_wrap=True)


def _print_json(update: dict[str, Any]) -> None:
    print(json.dumps(update), flush=True)  # noqa: T201 - machines read stdout


def _print_note(text: str) -> None:
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)
