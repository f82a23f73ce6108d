"""Going on while an evaluation does: each entry as it arrives, each change of what became of it."""

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

FIRST_MOMENT = 1.0
"""Seconds in which an evaluation that nobody knows may still appear."""
LOOK_AGAIN = 0.5
"""Seconds after which Postgres is asked again, should the stream have nothing new."""
SOON = 0.1
"""The same while the storage worker is waited for."""


async def follow(sources: Sources, text: str, console: Console, *, as_json: bool) -> None:
    """Tell all that has happened and go on until the evaluation has ended and is stored."""
    history, told = await _first(sources, text), UpdateTracker()
    if not as_json:
        _say(f"Following {printable(history.evaluation_id)}; Ctrl-C stops watching, nothing else.")
    while True:
        for update in told.updates(history):
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
    """Whether nothing more can come: it has ended, and Postgres has all of it if it was asked."""
    return history.cursor.phase in ENDED and history.ahead is None and history.is_stored


async def _first(sources: Sources, text: str) -> EvaluationHistory:
    """Find the evaluation, or wait a moment for it: its first event may be on its way."""
    until = monotonic() + FIRST_MOMENT
    while (resolved := await look_up(sources, text)) is None:
        if monotonic() > until:
            raise await unknown(sources, text)
        await asyncio.sleep(SOON)
    return resolved.history


async def _next(sources: Sources, history: EvaluationHistory) -> EvaluationHistory:
    """Wait until there may be something new, through any outage."""
    key, backoff, away = history.evaluation_id, Backoff(longest=2.0), False
    while True:
        try:
            await sources.wait(key, seconds=LOOK_AGAIN if history.is_stored else SOON)
            following = await sources.history(key)
        except UNAVAILABLE:
            if not away:
                _say("A server does not answer; waiting for it.")
            away = True
            await asyncio.sleep(backoff.next())
            continue
        finally:
            _heed_interrupt()
        if away:
            _say("It is back.")
        return following


def _heed_interrupt() -> None:
    """Take up an interrupt that was lost on the way: before Python 3.12, `wait_for` may swallow one."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError


def _print_end(history: EvaluationHistory, console: Console, *, as_json: bool) -> None:
    if as_json:
        _print_json({"kind": "end", **document(history)})
        return
    for line in (Text(), *heading(history), *outcome(history)):
        console.print(line, soft_wrap=True)


def _print_json(found: dict[str, Any]) -> None:
    print(json.dumps(found), flush=True)  # noqa: T201 - machines read stdout


def _say(words: str) -> None:
    Console(stderr=True).print(words, markup=False, highlight=False, soft_wrap=True)
