"""`scoreline replay EVALUATION`: reads the history of an evaluation and prints it."""

import asyncio
import json
from dataclasses import dataclass

from rich.console import Console

from eventlog.log import LogUnavailable
from scoreline.command_error import CommandError
from scoreline.reports.replay.comparison import compare, sides
from scoreline.reports.replay.comparison_text import comparison_document, show_comparison
from scoreline.reports.replay.document import document
from scoreline.reports.replay.exchange import exchange_document, exchange_lines, read_exchange
from scoreline.reports.replay.follow import follow
from scoreline.reports.replay.lookup import find, with_attempt
from scoreline.reports.replay.moment import Moment, NoSuchMoment
from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.past_state import cut
from scoreline.reports.replay.sources import UNAVAILABLE, Sources, open_sources
from scoreline.reports.replay.timeline_text import show
from scoreline.reports.screen import screen
from scoreline.servers.addresses import Servers
from scoreline.servers.errors import explain
from scoreline.settings import Settings


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """The options of the command."""

    evaluation: str
    origin: Origin = Origin.BOTH
    at: Moment | None = None
    attempt: int | None = None
    other: str | None = None
    follow: bool = False
    as_json: bool = False
    full: bool = False
    """Print the prompt as sent and the whole answer, too."""


def run_replay(servers: Servers, settings: Settings, options: ReplayOptions) -> None:
    """Print the history of an evaluation, a comparison of two, or updates until it ends."""
    try:
        asyncio.run(_replay(options, settings, servers))
    except UNAVAILABLE as error:
        server = "Redis" if isinstance(error, LogUnavailable) else "PostgreSQL"
        raise CommandError(
            explain(error) or f"{server} became unavailable during the read. Try again."
        ) from error


async def _replay(options: ReplayOptions, settings: Settings, servers: Servers) -> None:
    async with open_sources(settings, servers, options.origin) as sources:
        for status in (sources.redis, sources.postgres):
            if status.problem:
                Console(stderr=True).print(f"warning: {status.problem}", markup=False, soft_wrap=True)
        if options.other is not None:
            await _compare(options, sources, options.other)
        elif options.follow:
            await follow(sources, options.evaluation, screen(), as_json=options.as_json)
        else:
            await _show(options, sources)


async def _show(options: ReplayOptions, sources: Sources) -> None:
    resolved = await find(sources, options.evaluation)
    history, then = resolved.history, None
    attempt = options.attempt or resolved.attempt
    if options.at is not None:
        try:
            history, then = cut(history, options.at)
        except NoSuchMoment as outside:
            raise CommandError(str(outside)) from None
    if attempt is not None:
        with_attempt(history, attempt)
    exchange = await read_exchange(await sources.connection(), history) if options.full else None
    if options.as_json:
        more = {"exchange": exchange_document(exchange)} if exchange else {}
        _print_json(document(history, attempt=attempt, then=then) | more)
        return
    console = screen()
    show(console, history, attempt=attempt, then=then)
    for line in exchange_lines(exchange) if exchange else ():
        console.print(line, soft_wrap=True)


async def _compare(options: ReplayOptions, sources: Sources, other: str) -> None:
    left = await find(sources, options.evaluation)
    other = f"{left.history.evaluation_id}{other}" if other.startswith("@") else other
    right = await find(sources, other)
    comparison = compare(*sides((left.history, left.attempt), (right.history, right.attempt)))
    if options.as_json:
        _print_json(comparison_document(comparison))
    else:
        show_comparison(screen(), comparison)


def _print_json(value: dict[str, object]) -> None:
    print(json.dumps(value))  # noqa: T201 - machines read stdout
