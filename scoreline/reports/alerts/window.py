"""Samples of earlier views of a batch, which alerts compare with the newest. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, Self

from projections.folds.progress import Progress
from projections.queries.batches import BatchSnapshot
from scoreline.observability.thresholds import Thresholds
from scoreline.reports.batch_view import BatchView
from taskqueue.executor_registry import ExecutorInstance


class CounterSample(NamedTuple):
    """A batch's counters at one time."""

    at: datetime
    progress: Progress


class HeartbeatSample(NamedTuple):
    """An executor's last heartbeat on Redis' clock, and when the view that first showed it was read."""

    beat: float
    at: datetime


@dataclass(frozen=True, slots=True)
class AlertWindow:
    """Samples that a view is compared with; times are on the database's clock."""

    progressed_at: datetime
    samples: tuple[CounterSample, ...]
    """Counters of the last minutes, oldest first; never empty."""
    heartbeats: Mapping[str, HeartbeatSample]
    """Live executors by name."""
    lost: Mapping[str, datetime]
    """Executors whose heartbeats expired, with the time of the last one."""

    @classmethod
    def first(cls, view: BatchView) -> Self:
        """Begin with the first view: of the time before, only the batch's start is known."""
        began, snapshot = view.snapshot.accepted_at, view.snapshot
        progressed = snapshot.now if snapshot.progress.ended else began
        heartbeats = {each.name: _heartbeat(view, each, None) for each in view.fleet.serving(snapshot)}
        return cls(progressed, (CounterSample(began, Progress()), _sample(snapshot)), heartbeats, {})

    def after(self, view: BatchView, thresholds: Thresholds) -> Self:
        """Add a view; while Redis does not answer, the live executors stay those of the last answer."""
        sample = _sample(view.snapshot)
        is_unchanged = sample.progress.ended == self.samples[-1].progress.ended
        progressed = self.progressed_at if is_unchanged else sample.at
        window = self if view.fleet.unavailable else self._with_executors(view, thresholds)
        return replace(window, progressed_at=progressed, samples=_kept(self.samples, sample, thresholds))

    def _with_executors(self, view: BatchView, thresholds: Thresholds) -> Self:
        """Update live and lost executors: lost is one whose heartbeat was overdue before it disappeared."""
        serving, last_view = view.fleet.serving(view.snapshot), self.samples[-1].at
        live = {each.name: _heartbeat(view, each, self.heartbeats.get(each.name)) for each in serving}
        overdue = {
            name: each.at
            for name, each in self.heartbeats.items()
            if last_view - each.at >= thresholds.missed_beats
        }
        lost = {name: since for name, since in {**self.lost, **overdue}.items() if name not in live}
        return replace(self, heartbeats=live, lost=lost)


def _sample(snapshot: BatchSnapshot) -> CounterSample:
    return CounterSample(snapshot.now, snapshot.progress)


def _heartbeat(
    view: BatchView, executor: ExecutorInstance, before: HeartbeatSample | None
) -> HeartbeatSample:
    beat = view.fleet.heartbeats.get(executor.instance_id, 0.0)
    return before if before and before.beat == beat else HeartbeatSample(beat, view.snapshot.now)


def _kept(
    samples: tuple[CounterSample, ...], sample: CounterSample, thresholds: Thresholds
) -> tuple[CounterSample, ...]:
    """Keep a window; a count that fell, because dead letters were retried, starts a new one."""
    now, before = sample.progress, samples[-1].progress
    if now.executed < before.executed or now.dead_letters < before.dead_letters:
        return (sample,)
    since = sample.at - thresholds.failure_window
    # The last sample before the window stays: shares are measured from it.
    first = max((index for index, each in enumerate(samples) if each.at <= since), default=0)
    return (*samples[first:], sample)
