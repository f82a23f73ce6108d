"""`scoreline replay`: one evaluation replayed from its events, or batches verified against the log."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from scoreline.cli.option_models import filled
from scoreline.reports.replay.origin import Origin

if TYPE_CHECKING:
    from scoreline.servers.addresses import Servers
    from scoreline.settings import Settings

EPILOG = (
    "Examples:\n\nscoreline replay e-17   ·   scoreline replay e-17 --full\n\n"
    "scoreline replay e-17 --follow   ·   scoreline replay e-17 --at 4\n\n"
    "scoreline replay e-17 --at 09:30:02.5\n\n"
    "scoreline replay e-17 --diff e-18   ·   scoreline replay e-17@1 --diff @2\n\n"
    "scoreline replay --batch nightly   ·   scoreline replay --batch nightly --verify\n\n"
    "scoreline replay --verify --since 2h   ·   scoreline replay --verify --follow"
)

EXCLUSIVE = {"diff": ("at", "attempt", "follow", "full"), "follow": ("at", "attempt", "full")}
"""Flags, and the flags that each of them excludes."""
app = typer.Typer()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryOptions:
    """Flags of the replay of one evaluation."""

    origin: Annotated[
        Origin,
        typer.Option("--from", help="Source: Postgres, Redis, or both."),
    ] = Origin.BOTH
    at: Annotated[
        str | None,
        typer.Option(
            metavar="N|TIME",
            help="As of the first N entries in order of arrival, or of a time: "
            "2026-11-16T09:30:00Z, or 09:30:00.5 of the evaluation's day. UTC by default.",
        ),
    ] = None
    attempt: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only this attempt.")] = None
    other: Annotated[
        str | None,
        typer.Option("--diff", metavar="OTHER", help="Compare with another: ID, ID@2, or @2 of the same."),
    ] = None
    follow: Annotated[
        bool,
        typer.Option(
            "--follow",
            help="Follow new events until the evaluation has ended and is stored. With --verify: verify "
            "evaluations as they are stored, every 30 seconds, until interrupted.",
        ),
    ] = False
    full: Annotated[
        bool, typer.Option("--full", help="Include the prompt as sent and the whole answer.")
    ] = False

    def refuse_for_batches(self, evaluation: str | None) -> None:
        """Reject flags of one evaluation in a command about batches; raises `BadParameter`."""
        given = {"evaluation": evaluation, "from": None if self.origin is Origin.BOTH else self.origin}
        for name, value in (given | self._given()).items():
            if value is not None:
                option = "an EVALUATION" if name == "evaluation" else f"--{name}"
                raise typer.BadParameter(
                    f"{option} does not go with --batch, --verify, --rebuild or --summary"
                )

    def refuse_together(self) -> None:
        """Reject flags that exclude each other; raises `BadParameter`."""
        given = self._given()
        for one, others in EXCLUSIVE.items():
            for other in others:
                if given[one] is not None and given[other] is not None:
                    raise typer.BadParameter(f"--{one} and --{other} do not go together")

    def _given(self) -> dict[str, object]:
        """Return the values by flag; None was not given."""
        return {
            "at": self.at,
            "attempt": self.attempt,
            "diff": self.other,
            "follow": self.follow or None,
            "full": self.full or None,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheckOptions:
    """Flags of the replay of whole batches."""

    batch: Annotated[
        str | None, typer.Option(metavar="ID", help="Batch id, for --summary, --verify or --rebuild.")
    ] = None
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Verify the tables against the log; default: all batches."),
    ] = False
    since: Annotated[
        str | None,
        typer.Option(
            metavar="WHEN",
            help="With --verify: only evaluations that were stored since, an age (15m, 2h, 3d) by "
            "Postgres' clock or a time (2026-11-16T09:30:00Z). Counters and deleted rows are not compared.",
        ),
    ] = None
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Rebuild the tables from the log; default: all batches."),
    ] = False
    summary: Annotated[
        bool, typer.Option("--summary", help="Summary of a batch (the default with --batch).")
    ] = False

    @property
    def modes(self) -> list[str]:
        """The modes that were chosen; the summary is the default of a batch."""
        modes = {"verify": self.verify, "rebuild": self.rebuild, "summary": self.summary}
        chosen = [name for name, given in modes.items() if given]
        return chosen or (["summary"] if self.batch is not None else [])


@app.command(epilog=EPILOG)
@filled
def run(
    evaluation: Annotated[
        str | None, typer.Argument(help="Evaluation id; ID@2 is its second attempt.", show_default=False)
    ] = None,
    *,
    history: HistoryOptions,
    batches: LogCheckOptions,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document; with --follow one object per line.")
    ] = False,
) -> None:
    """Replay an evaluation: its events in order of arrival, and how each was processed."""
    if batches.modes:
        follow = history.follow and batches.modes == ["verify"]
        replace(history, follow=history.follow and not follow).refuse_for_batches(evaluation)
        raise typer.Exit(_about_batches(batches, follow=follow, as_json=as_json))
    if batches.since is not None:
        raise typer.BadParameter("--since goes with --verify")
    if evaluation is None:
        raise typer.BadParameter(
            "which evaluation? Give its id: scoreline replay ID", param_hint="EVALUATION"
        )
    history.refuse_together()
    _show_history(evaluation, history, as_json=as_json)


def _show_history(evaluation: str, flags: HistoryOptions, *, as_json: bool) -> None:
    from scoreline.local.servers import named_servers
    from scoreline.reports.replay.run import ReplayOptions, run_replay
    from scoreline.settings import load_settings

    moment = None if flags.at is None else _moment(flags.at)
    settings = load_settings()
    options = ReplayOptions(
        *(evaluation, flags.origin, moment, flags.attempt, flags.other),
        follow=flags.follow,
        as_json=as_json,
        full=flags.full,
    )
    with named_servers(settings) as servers:
        run_replay(servers, settings, options)


def _about_batches(flags: LogCheckOptions, *, follow: bool, as_json: bool) -> int:
    batch, wanted = flags.batch, flags.modes
    if flags.since is not None and wanted != ["verify"]:
        raise typer.BadParameter("--since goes with --verify")
    since = _since(flags.since)
    if len(wanted) > 1:
        raise typer.BadParameter(f"--{wanted[0]} and --{wanted[1]} do not go together")
    if batch is None and wanted == ["summary"]:
        raise typer.BadParameter("which batch? Give its id: scoreline replay --batch ID --summary")
    from scoreline.local.servers import ready_postgres
    from scoreline.settings import load_settings

    settings = load_settings()
    with ready_postgres(settings) as servers:
        if follow:
            from scoreline.reports.audit.continuous import run_continuously

            return run_continuously(servers, settings, batch, as_json=as_json, since=since)
        if wanted == ["verify"]:
            from scoreline.reports.audit.verified import run_verify

            return run_verify(servers, settings, batch, as_json=as_json, since=since)
        return _report(servers, settings, batch, wanted[0], as_json=as_json)


def _report(
    servers: "Servers", settings: "Settings", batch: str | None, mode: str, *, as_json: bool
) -> int:
    if mode == "rebuild":
        from scoreline.reports.audit.rebuilt import run_rebuild

        return run_rebuild(servers, settings, batch, as_json=as_json)
    from scoreline.reports.audit.summary import run_summary

    return run_summary(servers, batch or "", as_json=as_json)


def _since(text: str | None) -> Any:  # noqa: ANN401 - its type is imported only where it is needed
    from scoreline.reports.audit.since import parse_since

    try:
        return None if text is None else parse_since(text)
    except ValueError:
        expected = "an age like 15m, 2h or 3d, or a time like 2026-11-16T09:30:00Z"
        raise typer.BadParameter(f"{text!r} is no time: give {expected}", param_hint="--since") from None


def _moment(text: str) -> Any:  # noqa: ANN401 - its type is imported only where it is needed
    from scoreline.reports.replay.moment import parse_moment

    try:
        return parse_moment(text)
    except ValueError:
        expected = "a number of entries, a time like 09:30:00.5, or 2026-11-16T09:30:00Z"
        raise typer.BadParameter(f"{text!r} is no moment: give {expected}", param_hint="--at") from None
