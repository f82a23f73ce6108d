"""Events, dispositions and gaps of a history as short texts. Pure."""

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
    """Return the disposition of an entry, or that it is not stored yet."""
    if not line.pending or line.disposition is EntryDisposition.WAITING:
        return line.disposition.value
    return (
        "not stored yet"
        if line.disposition is EntryDisposition.APPLIED
        else f"{line.disposition.value}, not stored yet"
    )


def place(line: TimelineEntry) -> str:
    """Return the arrival rank of an entry, and the successor that arrived before it."""
    if line.overtaken_by is None:
        return str(line.rank)
    attempt, sequence = line.overtaken_by
    after = f"seq {sequence}" if attempt == line.event.attempt else f"attempt {attempt}"
    return f"{line.rank}, after {after}"


def detail(line: TimelineEntry) -> str:
    """Return the note of an entry, if any, and the summary of its event."""
    summary = describe(line.event)
    return f"{excerpt(line.note, SHORT)} · {summary}" if line.note else summary


def describe(event: Event) -> str:
    """Return a summary of an event's payload; control characters of foreign text are escaped."""
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
            score_text = "" if score is None else f"score {score:g}"
            return data.verdict, score_text, "" if output is None else quoted(output), *_spent(data)
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
    """Return a score, and whether it passed."""
    passed = {True: " passed", False: " failed", None: ""}[score.passed]
    return f"{score.score:g}{passed}"


def fault(error: p.ErrorDetail) -> str:
    """Return an error on one line."""
    message = excerpt(error.message, SHORT)
    return f"{excerpt(error.kind, SHORT)}: {message}" if message else excerpt(error.kind, SHORT)


def quoted(text: str) -> str:
    """Return the beginning of an output in quotes."""
    return f'"{excerpt(text, SHORT)}"'


def ranges_text(missing: Iterable[range]) -> str:
    """Return ranges of missing sequences as text."""
    return ", ".join(
        str(part.start) if len(part) == 1 else f"{part.start}-{part.stop - 1}" for part in missing
    )


def bridged(bridge: Bridging, part: range) -> str:
    """Return which sequences were missing, and how the gap was bridged."""
    closing = f"{bridge.closing.sequence} {bridge.closing.type}"
    came = [sequence for sequence in bridge.came_late if sequence in part]
    if bridge.worked_out:
        return f"{ranges_text([part])} not here; bridged to {closing} once {span(bridge.waited)} had passed"
    later = f"had not arrived ({', '.join(map(str, came))} came later)"
    missing = later if came else "never arrived"
    return f"{ranges_text([part])} {missing}; bridged {span(bridge.waited)} later by {closing}"


def missing(gap: OpenGap, part: range, now: datetime | None) -> str:
    """Return which sequences are missing, since when, and which entries wait for them."""
    waiting = ", ".join(f"{event.sequence} {event.type}" for event in gap.waiting[:5])
    more = f" and {len(gap.waiting) - 5} more" if len(gap.waiting) > 5 else ""
    ago = f", {span(now - gap.since)} ago" if now else ""
    return f"{ranges_text([part])} missing since {clock(gap.since)}{ago}; waiting: {waiting}{more}"
