"""`scoreline replay EVALUATION`: find it, tell it, show it."""

import asyncio
import json
from dataclasses import dataclass

from rich.console import Console

from eventlog.log import LogUnavailable
from scoreline.problem import Problem
from scoreline.reports.replay.asof import cut
from scoreline.reports.replay.diff import compare, sides
from scoreline.reports.replay.document import document
from scoreline.reports.replay.exchange import exchange_document, exchange_lines, read_exchange
from scoreline.reports.replay.follow import follow
from scoreline.reports.replay.lookup import find, with_attempt
from scoreline.reports.replay.moment import Moment, NoSuchMoment
from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.sources import AWAY, Sources, open_sources
from scoreline.reports.replay.view import show
from scoreline.reports.replay.view_diff import comparison_document, show_comparison
from scoreline.reports.screen import screen
from scoreline.servers.addresses import Servers
from scoreline.servers.errors import explain
from scoreline.settings import Settings


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked for."""

    evaluation: str
    origin: Origin = Origin.BOTH
    at: Moment | None = None
    attempt: int | None = None
    other: str | None = None
    follow: bool = False
    as_json: bool = False
    full: bool = False
    """With the prompt as sent and the whole answer."""


def run_replay(servers: Servers, settings: Settings, wanted: Wanted) -> None:
    """Show an evaluation's life as it was asked for."""
    try:
        asyncio.run(_replay(wanted, settings, servers))
    except AWAY as away:
        which = "Redis" if isinstance(away, LogUnavailable) else "PostgreSQL"
        raise Problem(explain(away) or f"{which} went away while it was read. Try again.") from away


async def _replay(wanted: Wanted, settings: Settings, servers: Servers) -> None:
    async with open_sources(settings, servers, wanted.origin) as sources:
        for glance in (sources.redis, sources.postgres):
            if glance.problem:
                Console(stderr=True).print(f"warning: {glance.problem}", markup=False, soft_wrap=True)
        if wanted.other is not None:
            await _compare(wanted, sources, wanted.other)
        elif wanted.follow:
            await follow(sources, wanted.evaluation, screen(), as_json=wanted.as_json)
        else:
            await _show(wanted, sources)


async def _show(wanted: Wanted, sources: Sources) -> None:
    meant = await find(sources, wanted.evaluation)
    story, then = meant.story, None
    attempt = wanted.attempt or meant.attempt
    if wanted.at is not None:
        try:
            story, then = cut(story, wanted.at)
        except NoSuchMoment as outside:
            raise Problem(str(outside)) from None
    if attempt is not None:
        with_attempt(story, attempt)
    exchange = await read_exchange(await sources.connection(), story) if wanted.full else None
    if wanted.as_json:
        more = {"exchange": exchange_document(exchange)} if exchange else {}
        _print_json(document(story, attempt=attempt, then=then) | more)
        return
    console = screen()
    show(console, story, attempt=attempt, then=then)
    for line in exchange_lines(exchange) if exchange else ():
        console.print(line, soft_wrap=True)


async def _compare(wanted: Wanted, sources: Sources, other: str) -> None:
    left = await find(sources, wanted.evaluation)
    other = f"{left.story.evaluation_id}{other}" if other.startswith("@") else other
    right = await find(sources, other)
    comparison = compare(*sides((left.story, left.attempt), (right.story, right.attempt)))
    if wanted.as_json:
        _print_json(comparison_document(comparison))
    else:
        show_comparison(screen(), comparison)


def _print_json(found: dict[str, object]) -> None:
    print(json.dumps(found))  # noqa: T201 - machines read stdout
