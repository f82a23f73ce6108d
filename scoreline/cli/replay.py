"""`scoreline replay`: one evaluation replayed from its events, or batches verified against the log."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from scoreline.reports.replay.origin import Origin

if TYPE_CHECKING:
    from scoreline.servers.addresses import Servers
    from scoreline.settings import Settings

EPILOG = (
    "Examples:\n\nscoreline replay e-17   ·   scoreline replay e-17 --full\n\n"
    "scoreline replay e-17 --follow   ·   scoreline replay e-17 --at 4\n\n"
    "scoreline replay e-17 --at 09:30:02.5\n\n"
    "scoreline replay e-17 --diff e-18   ·   scoreline replay e-17@1 --diff @2\n\n"
    "scoreline replay --batch nightly   ·   scoreline replay --batch nightly --verify"
)


def run(  # noqa: PLR0913 - a command has its flags
    evaluation: Annotated[
        str | None, typer.Argument(help="Evaluation id; ID@2 is its second attempt.", show_default=False)
    ] = None,
    *,
    origin: Annotated[
        Origin,
        typer.Option("--from", help="Source: Postgres, Redis, or both."),
    ] = Origin.BOTH,
    at: Annotated[
        str | None,
        typer.Option(
            metavar="N|TIME",
            help="As of the first N entries in order of arrival, or of a time: "
            "2026-11-16T09:30:00Z, or 09:30:00.5 of the evaluation's day. UTC by default.",
        ),
    ] = None,
    attempt: Annotated[int | None, typer.Option(min=1, metavar="N", help="Only this attempt.")] = None,
    other: Annotated[
        str | None,
        typer.Option("--diff", metavar="OTHER", help="Compare with another: ID, ID@2, or @2 of the same."),
    ] = None,
    follow: Annotated[
        bool,
        typer.Option("--follow", help="Follow new events until the evaluation has ended and is stored."),
    ] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Include the prompt as sent and the whole answer.")
    ] = False,
    batch: Annotated[
        str | None, typer.Option(metavar="ID", help="Batch id, for --summary, --verify or --rebuild.")
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Verify the tables against the log; default: all batches."),
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option("--rebuild", help="Rebuild the tables from the log; default: all batches."),
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="Summary of a batch (the default with --batch).")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON document; with --follow one object per line.")
    ] = False,
) -> None:
    """Replay an evaluation: its events in order of arrival, and how each was processed."""
    if batch is not None or verify or rebuild or summary:
        read_from = None if origin is Origin.BOTH else origin
        one = {"evaluation": evaluation, "from": read_from, "at": at, "attempt": attempt, "diff": other}
        _refuse_for_batches(**one, follow=follow or None, full=full or None)
        modes = {"verify": verify, "rebuild": rebuild, "summary": summary}
        wanted = [name for name, given in modes.items() if given]
        raise typer.Exit(_about_batches(batch, wanted or ["summary"], as_json=as_json))
    if evaluation is None:
        raise typer.BadParameter(
            "which evaluation? Give its id: scoreline replay ID", param_hint="EVALUATION"
        )
    _refuse_together(at=at, attempt=attempt, diff=other, follow=follow or None, full=full or None)
    from scoreline.local.servers import named_servers
    from scoreline.reports.replay.run import ReplayOptions, run_replay
    from scoreline.settings import load_settings

    moment = None if at is None else _moment(at)
    settings = load_settings()
    options = ReplayOptions(evaluation, origin, moment, attempt, other, follow, as_json, full)
    with named_servers(settings) as servers:
        run_replay(servers, settings, options)


def _about_batches(batch: str | None, wanted: list[str], *, as_json: bool) -> int:
    if len(wanted) > 1:
        raise typer.BadParameter(f"--{wanted[0]} and --{wanted[1]} do not go together")
    if batch is None and wanted == ["summary"]:
        raise typer.BadParameter("which batch? Give its id: scoreline replay --batch ID --summary")
    from scoreline.local.servers import ready_postgres
    from scoreline.settings import load_settings

    settings = load_settings()
    with ready_postgres(settings) as servers:
        return _report(servers, settings, batch, wanted[0], as_json=as_json)


def _report(
    servers: "Servers", settings: "Settings", batch: str | None, mode: str, *, as_json: bool
) -> int:
    if mode == "verify":
        from scoreline.reports.audit.verified import run_verify

        return run_verify(servers, settings, batch, as_json=as_json)
    if mode == "rebuild":
        from scoreline.reports.audit.rebuilt import run_rebuild

        return run_rebuild(servers, settings, batch, as_json=as_json)
    from scoreline.reports.audit.summary import run_summary

    return run_summary(servers, batch or "", as_json=as_json)


def _refuse_for_batches(**given: object) -> None:
    """Reject options of one evaluation in a command about batches."""
    for name, value in given.items():
        if value is not None:
            option = "an EVALUATION" if name == "evaluation" else f"--{name}"
            raise typer.BadParameter(f"{option} does not go with --batch, --verify, --rebuild or --summary")


def _refuse_together(**given: object) -> None:
    """Reject flags that exclude each other."""
    for one, others in {
        "diff": ("at", "attempt", "follow", "full"),
        "follow": ("at", "attempt", "full"),
    }.items():
        for other in others:
            if given[one] is not None and given[other] is not None:
                raise typer.BadParameter(f"--{one} and --{other} do not go together")


def _moment(text: str) -> Any:  # noqa: ANN401 - its type is imported only where it is needed
    from scoreline.reports.replay.moment import parse_moment

    try:
        return parse_moment(text)
    except ValueError:
        expected = "a number of entries, a time like 09:30:00.5, or 2026-11-16T09:30:00Z"
        raise typer.BadParameter(f"{text!r} is no moment: give {expected}", param_hint="--at") from None
