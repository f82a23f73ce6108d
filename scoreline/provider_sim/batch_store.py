"""A message batch and its progress: a function of the time, without a timer.

A batch ends after its duration, unless it expires or is cancelled before. Each request is done at a drawn
share of the duration; what is not done when the batch ends early is cancelled or expired. The requests are
stored in a file, and results are computed as they are read: a hundred thousand take a few megabytes.
"""

import json
import os
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from scoreline.provider_sim.settings import BatchSettings

_IN_MEMORY = 1 << 18
_LONGEST_CANCELING = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class BatchSchedule:
    """When a batch ends, and how."""

    created: datetime
    due: datetime
    expires: datetime
    fates: BatchSettings
    canceled: datetime | None = None

    @property
    def stopped(self) -> datetime:
        """When work on it ends: all is done, its time is up, or it was canceled."""
        return min(self.due, self.expires, self.canceled or self.due)

    @property
    def ended(self) -> datetime:
        """When it has ended; a cancellation takes a little."""
        grace = min(_LONGEST_CANCELING, (self.due - self.created) / 4)
        return self.stopped + grace if self.stopped == self.canceled else self.stopped

    def status(self, now: datetime) -> str:
        """Return the progress, from 0 to 1."""
        if now >= self.ended:
            return "ended"
        return "in_progress" if self.canceled is None else "canceling"

    def outcome(self, place: float, fortune: float) -> str:
        """Return the outcome of a request that is done at this share of the duration."""
        if self.created + (self.due - self.created) * place > self.stopped:
            return "canceled" if self.stopped == self.canceled else "expired"
        below = 0.0
        for name in ("errored", "expired", "canceled"):
            below += getattr(self.fates, f"batch_{name}")
            if fortune < below:
                return name
        return "succeeded"


def course_of(fates: BatchSettings, now: datetime) -> BatchSchedule:
    """Set the course of a new batch."""
    due, expires = (timedelta(seconds=each) for each in (fates.batch_seconds, fates.batch_expiry))
    return BatchSchedule(now, now + due, now + expires, fates)


@dataclass(slots=True)
class SimulatedBatch:
    """A batch and its requests."""

    id: str
    course: BatchSchedule
    random: Random
    _lines: IO[bytes] = field(default_factory=lambda: SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115 - closed by close
    _offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    _sound: bytearray = field(default_factory=bytearray)
    _places: "array[float]" = field(default_factory=lambda: array("d"))
    _fortunes: "array[float]" = field(default_factory=lambda: array("d"))
    _counts: Counter[str] | None = None

    def __len__(self) -> int:
        return len(self._offsets)

    def add(self, line: bytes, *, sound: bool) -> None:
        """Store a request; an invalid one fails when it is processed."""
        self._offsets.append(self._lines.seek(0, os.SEEK_CUR))
        self._lines.write(line + b"\n")
        self._sound.append(sound)
        self._places.append(self.random.random())
        self._fortunes.append(self.random.random())

    def counts(self, now: datetime) -> Counter[str]:
        """Count the requests; all are in processing until the batch has ended."""
        if self.course.status(now) != "ended":
            return Counter(processing=len(self))
        if self._counts is None:
            self._counts = Counter(self._outcome(at) for at in range(len(self)))
        return self._counts

    def results(self) -> Iterator[tuple[dict[str, Any], str]]:
        """Yield each request with its outcome, in the order in which they were done."""
        for at in sorted(range(len(self)), key=self._places.__getitem__):
            self._lines.seek(self._offsets[at])
            yield json.loads(self._lines.readline()), self._outcome(at)

    def close(self) -> None:
        """Delete the requests."""
        self._lines.close()

    def _outcome(self, at: int) -> str:
        outcome = self.course.outcome(self._places[at], self._fortunes[at])
        return outcome if self._sound[at] or outcome != "succeeded" else "errored"
