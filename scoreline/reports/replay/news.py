"""What is new in a story since it was last told. Pure."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any

from scoreline.formatting import clock, excerpt
from scoreline.reports.replay import wording
from scoreline.reports.replay.document import bridge_json, gap_json, line_json, refusal_json
from scoreline.reports.replay.lines import Fate, Line, Refusal
from scoreline.reports.replay.story import Story


@dataclass(frozen=True, slots=True)
class News:
    """One thing that happened: a line for a person, an object for a machine."""

    text: str
    json: dict[str, Any]
    fate: Fate | None = None


@dataclass(slots=True)
class Told:
    """What has been told already: each entry once, and again when something else became of it."""

    _told: set[Hashable] = field(default_factory=set)
    _waited: set[bytes] = field(default_factory=set)

    def news(self, story: Story) -> Iterator[News]:
        """Tell what is new."""
        for bridge in story.bridges:
            if self._is_new("bridge", bridge.closing_key):
                for hole in bridge.missing:
                    said = f"attempt {bridge.attempt}: {wording.bridged(bridge, hole)}"
                    yield News(said, {"kind": "bridge", **bridge_json(bridge)})
        arrivals: list[Line | Refusal] = [*story.lines, *story.refusals]
        for one in sorted(arrivals, key=lambda one: one.rank):
            yield from self._line(one) if isinstance(one, Line) else self._refusal(one)
        if story.gap and self._is_new("gap", story.gap.attempt, story.gap.missing):
            for hole in story.gap.missing:
                said = f"attempt {story.gap.attempt}: {wording.missing(story.gap, hole, None)}"
                yield News(said, {"kind": "gap", **gap_json(story.gap)}, Fate.WAITING)

    def _line(self, line: Line) -> Iterator[News]:
        if not self._is_new("entry", line.entry_id, line.fate):
            return
        waited = line.entry_id in self._waited and line.fate is not Fate.WAITING
        if line.fate is Fate.WAITING:
            self._waited.add(line.entry_id)
        yield News(_said(line, waited=waited), {"kind": "entry", **line_json(line)}, line.fate)

    def _refusal(self, refusal: Refusal) -> Iterator[News]:
        if self._is_new("refusal", refusal.id):
            said = f"in quarantine: {refusal.reason}  {excerpt(refusal.detail, wording.SHORT)}"
            text = f"{clock(refusal.arrived_at)}  {said}"
            yield News(text, {"kind": "quarantine", **refusal_json(refusal)}, Fate.REJECTED)

    def _is_new(self, *what: Hashable) -> bool:
        if what in self._told:
            return False
        self._told.add(what)
        return True


def _said(line: Line, *, waited: bool) -> str:
    event = line.event
    key = f"{event.attempt}/{event.sequence}"
    fate = f"{line.fate} (had waited)" if waited else line.fate.value
    after = f"  (arrived after {line.overtaken_by[0]}/{line.overtaken_by[1]})" if line.overtaken_by else ""
    words = f"{key:5}  {event.type:12}  {fate:9}  {excerpt(event.source, 20)}  {wording.detail(line)}"
    return f"{clock(line.arrived_at)}  {words}{after}"
