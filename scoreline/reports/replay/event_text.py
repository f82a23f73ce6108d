"""The words of a history: spans of time, what an event says in short, what a gap came to. Pure."""

from collections.abc import Iterable
from datetime import datetime, timedelta

from eventlog import payloads as p
from eventlog.events import Event
from scoreline.formatting import clock, counted, excerpt, money, span
from scoreline.reports.replay.gaps import Bridging, OpenGap
from scoreline.reports.replay.timeline_entry import EntryDisposition, TimelineEntry

SHORT = 120
"""Characters of a foreign text in one line of a timeline."""


def verdict(line: TimelineEntry) -> str:
    """Describe what became of an entry, or that Postgres does not have it yet."""
    if not line.pending or line.disposition is EntryDisposition.WAITING:
        return line.disposition.value
    return (
        "not stored yet"
        if line.disposition is EntryDisposition.APPLIED
        else f"{line.disposition.value}, not stored yet"
    )


def place(line: TimelineEntry) -> str:
    """Describe when in the order an entry arrived, plainly where that is not the order of the events."""
    if line.overtaken_by is None:
        return str(line.rank)
    attempt, sequence = line.overtaken_by
    after = f"seq {sequence}" if attempt == line.event.attempt else f"attempt {attempt}"
    return f"{line.rank}, after {after}"


def detail(line: TimelineEntry) -> str:
    """Describe in short what an entry carries, and first what is wrong with it."""
    said = describe(line.event)
    return f"{excerpt(line.note, SHORT)} · {said}" if line.note else said


def describe(event: Event) -> str:
    """Describe in short what an event carries; foreign text comes out as text."""
    return " · ".join(part for part in _parts(event.data) if part)


def _parts(data: p.AnyPayload) -> Iterable[str]:
    match data:
        case p.Queued(case=case, answer=answer, scores=scores):
            known = f"answer known: {quoted(answer.output)}" if answer else ""
            return f"case {excerpt(case.id, SHORT)}", known, counted(len(scores), "score") if scores else ""
        case p.Provisioning(executor=executor, runtime=runtime):
            return excerpt(executor, SHORT), excerpt(runtime, SHORT)
        case p.Running(target=target, process=process):
            return excerpt(target, SHORT), process and f"process {excerpt(process, SHORT)}"
        case p.Responded(cached=cached):
            return quoted(data.output), *_spent(data), "cached" if cached else ""
        case p.Scored(evaluator=evaluator, reason=reason):
            return f"{excerpt(evaluator, SHORT)} {judged(data)}", excerpt(reason, SHORT)
        case p.Completed(score=score, output=output):
            score_said = "" if score is None else f"score {score:g}"
            return data.verdict, score_said, "" if output is None else quoted(output), *_spent(data)
        case _:
            return _parts_of_failure(data)


def _parts_of_failure(data: p.Retrying | p.Failed | p.TimedOut | p.Cancelled) -> Iterable[str]:
    match data:
        case p.Retrying(error=error, retry_at=retry_at):
            return fault(error), f"again at {clock(retry_at)}"
        case p.Failed(error=error, scores=scores):
            return fault(error), _scores_kept(scores)
        case p.TimedOut(limit=limit, seconds=seconds, error=error):
            return f"{excerpt(limit, SHORT)} limit of {seconds:g} s", fault(error) if error else ""
        case p.Cancelled(by=by, reason=reason):
            return f"by {excerpt(by, SHORT)}", excerpt(reason, SHORT)


def _scores_kept(scores: Iterable[p.Score]) -> str:
    kept = ", ".join(f"{excerpt(score.evaluator, SHORT)} {judged(score)}" for score in scores)
    return f"scores kept: {kept}" if kept else ""


def _spent(data: p.Answer | p.Completed) -> tuple[str, ...]:
    return (
        counted(data.usage.total, "token") if data.usage.total else "",
        money(data.cost_usd) if data.cost_usd else "",
        span(timedelta(milliseconds=data.latency_ms)) if data.latency_ms else "",
    )


def judged(score: p.Score) -> str:
    """Write a score, and whether that was enough."""
    passed = {True: " passed", False: " failed", None: ""}[score.passed]
    return f"{score.score:g}{passed}"


def fault(error: p.ErrorDetail) -> str:
    """Write an error on one line."""
    message = excerpt(error.message, SHORT)
    return f"{excerpt(error.kind, SHORT)}: {message}" if message else excerpt(error.kind, SHORT)


def quoted(text: str) -> str:
    """Show the beginning of an output as what it is."""
    return f'"{excerpt(text, SHORT)}"'


def stretches(missing: Iterable[range]) -> str:
    """Name missing sequences."""
    return ", ".join(
        str(hole.start) if len(hole) == 1 else f"{hole.start}-{hole.stop - 1}" for hole in missing
    )


def bridged(bridge: Bridging, hole: range) -> str:
    """Describe what became of a hole that was bridged."""
    closing = f"{bridge.closing.sequence} {bridge.closing.type}"
    came = [sequence for sequence in bridge.came_late if sequence in hole]
    if bridge.worked_out:
        return f"{stretches([hole])} not here; bridged to {closing} once {span(bridge.waited)} had passed"
    later = f"had not arrived ({', '.join(map(str, came))} came later)"
    missing = later if came else "never arrived"
    return f"{stretches([hole])} {missing}; bridged {span(bridge.waited)} later by {closing}"


def missing(gap: OpenGap, hole: range, now: datetime | None) -> str:
    """Describe what is missing, since when, and what waits for it."""
    waiting = ", ".join(f"{event.sequence} {event.type}" for event in gap.waiting[:5])
    more = f" and {len(gap.waiting) - 5} more" if len(gap.waiting) > 5 else ""
    ago = f", {span(now - gap.since)} ago" if now else ""
    return f"{stretches([hole])} missing since {clock(gap.since)}{ago}; waiting: {waiting}{more}"
