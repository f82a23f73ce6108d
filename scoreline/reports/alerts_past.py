"""What earlier looks at a batch have shown, as far as it matters to alerts. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, Self

from projections.queries.batches import Snapshot
from scoreline.observability.thresholds import Thresholds
from scoreline.reports.look import Look
from taskqueue.executor_registry import ExecutorInstance


class Mark(NamedTuple):
    """Counters at one moment."""

    at: datetime
    done: int
    ended: int
    """With a verdict, or given up."""
    dead: int


class Heard(NamedTuple):
    """The last word of an executor, and when that was noticed."""

    beat: float
    at: datetime


@dataclass(frozen=True, slots=True)
class Past:
    """What to compare a look with; times are the database's."""

    progressed_at: datetime
    marks: tuple[Mark, ...]
    """The counters of the last minutes, oldest first; never empty."""
    heard: Mapping[str, Heard]
    """Executors that are alive, by name."""
    lost: Mapping[str, datetime]
    """Executors that fell silent and are gone, with when they were last heard of."""

    @classmethod
    def before(cls, look: Look) -> Self:
        """Begin with a look: all that is known besides is when the batch began."""
        began, snapshot = look.snapshot.accepted_at, look.snapshot
        progressed = snapshot.now if snapshot.done else began
        heard = {each.name: _heard(look, each, None) for each in look.crew.serving(snapshot)}
        return cls(progressed, (Mark(began, 0, 0, 0), _mark(snapshot)), heard, {})

    def after(self, look: Look, limits: Thresholds) -> Self:
        """Take note of a look; who is alive is remembered while Redis does not say."""
        mark = _mark(look.snapshot)
        progressed = self.progressed_at if mark.done == self.marks[-1].done else mark.at
        past = self if look.crew.away else self.with_crew(look, limits)
        return replace(past, progressed_at=progressed, marks=_kept(self.marks, mark, limits))

    def with_crew(self, look: Look, limits: Thresholds) -> Self:
        """Take note of who is there, and who is missed: whoever was silent when it was last seen."""
        serving, last_look = look.crew.serving(look.snapshot), self.marks[-1].at
        heard = {each.name: _heard(look, each, self.heard.get(each.name)) for each in serving}
        silent = {
            name: each.at for name, each in self.heard.items() if last_look - each.at >= limits.missed_beats
        }
        missed = {name: since for name, since in {**self.lost, **silent}.items() if name not in heard}
        return replace(self, heard=heard, lost=missed)


def _mark(snapshot: Snapshot) -> Mark:
    ended = snapshot.completed + snapshot.dead_letters
    return Mark(snapshot.now, snapshot.done, ended, snapshot.dead_letters)


def _heard(look: Look, one: ExecutorInstance, before: Heard | None) -> Heard:
    beat = look.crew.beats.get(one.instance_id, 0.0)
    return before if before and before.beat == beat else Heard(beat, look.snapshot.now)


def _kept(marks: tuple[Mark, ...], mark: Mark, limits: Thresholds) -> tuple[Mark, ...]:
    """Keep a window; a count that fell, for what was given up is tried again, starts anew."""
    if mark.ended < marks[-1].ended or mark.dead < marks[-1].dead:
        return (mark,)
    since = mark.at - limits.failure_window
    # The last one outside the window stays: shares are measured from it.
    first = max((index for index, each in enumerate(marks) if each.at <= since), default=0)
    return (*marks[first:], mark)
