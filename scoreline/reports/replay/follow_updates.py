"""Updates of a history since it was last read. Pure."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from scoreline.formatting import clock, excerpt
from scoreline.reports.replay import event_text
from scoreline.reports.replay.document import bridge_json, gap_json, line_json, refusal_json
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.timeline_entry import EntryDisposition, RejectedTimelineEntry, TimelineEntry


@dataclass(frozen=True, slots=True)
class FollowUpdate:
    """One update, as a line of text and as JSON."""

    text: str
    json: dict[str, Any]
    disposition: EntryDisposition | None = None


@dataclass(slots=True)
class UpdateTracker:
    """Keeps which updates were returned: each entry once, and again when its disposition changes."""

    _reported: set[Hashable] = field(default_factory=set)
    _waited: set[bytes] = field(default_factory=set)

    def updates(self, history: EvaluationHistory) -> Iterator[FollowUpdate]:
        """Return the updates since the last call."""
        for bridge in history.bridges:
            if self._is_new("bridge", bridge.closing_key):
                for part in bridge.missing:
                    text = f"attempt {bridge.attempt}: {event_text.bridged(bridge, part)}"
                    yield FollowUpdate(text, {"kind": "bridge", **bridge_json(bridge)})
        arrivals: list[TimelineEntry | RejectedTimelineEntry] = [*history.lines, *history.refusals]
        for one in sorted(arrivals, key=lambda one: one.rank):
            yield from self._line(one) if isinstance(one, TimelineEntry) else self._refusal(one)
        if history.gap and self._is_new("gap", history.gap.attempt, history.gap.missing):
            for part in history.gap.missing:
                text = f"attempt {history.gap.attempt}: {event_text.missing(history.gap, part, None)}"
                yield FollowUpdate(text, {"kind": "gap", **gap_json(history.gap)}, EntryDisposition.WAITING)

    def _line(self, line: TimelineEntry) -> Iterator[FollowUpdate]:
        if not self._is_new("entry", line.entry_id, line.disposition):
            return
        waited = line.entry_id in self._waited and line.disposition is not EntryDisposition.WAITING
        if line.disposition is EntryDisposition.WAITING:
            self._waited.add(line.entry_id)
        yield FollowUpdate(
            _entry_text(line, waited=waited), {"kind": "entry", **line_json(line)}, line.disposition
        )

    def _refusal(self, refusal: RejectedTimelineEntry) -> Iterator[FollowUpdate]:
        if self._is_new("refusal", refusal.id):
            reason = f"{refusal.reason}  {excerpt(refusal.detail, event_text.SHORT)}"
            text = f"{clock(refusal.arrived_at)}  in quarantine: {reason}"
            yield FollowUpdate(
                text, {"kind": "quarantine", **refusal_json(refusal)}, EntryDisposition.REJECTED
            )

    def _is_new(self, *key: Hashable) -> bool:
        if key in self._reported:
            return False
        self._reported.add(key)
        return True


def _entry_text(line: TimelineEntry, *, waited: bool) -> str:
    event = line.event
    key = f"{event.attempt}/{event.sequence}"
    disposition = f"{line.disposition} (had waited)" if waited else line.disposition.value
    after = f"  (arrived after {line.overtaken_by[0]}/{line.overtaken_by[1]})" if line.overtaken_by else ""
    text = (
        f"{key:5}  {event.type:12}  {disposition:9}  {excerpt(event.source, 20)}  {event_text.detail(line)}"
    )
    return f"{clock(line.arrived_at)}  {text}{after}"
