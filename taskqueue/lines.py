"""Where the tasks of a batch wait: in one line, or in several where some of them are held up by a lane.

A batch whose targets nobody counts has one line, and its name is the batch's. Where calls are counted, each
such target has a line of its own, so that a target without capacity holds up no other; and what has its
answer already and is only to be judged waits in a line that is served before new work. Pure.
"""

from dataclasses import dataclass
from functools import cached_property

from domain.batch_spec import BatchSpec
from eventlog import payloads as p

_BESIDE = "\x1f"
"""Between a batch's id and the name of a line beside its own: no id has control characters."""
OWN = ""
SCORING = "scoring"


def line_of(batch_id: str, channel: str = OWN) -> str:
    """Name a line of a batch."""
    return f"{batch_id}{_BESIDE}{channel}" if channel else batch_id


def split(line: str) -> tuple[str, str]:
    """Say which batch a line is of, and which of its lines it is."""
    batch_id, _, channel = line.partition(_BESIDE)
    return batch_id, channel


@dataclass(frozen=True)
class Lines:
    """The lines of a batch."""

    batch_id: str
    spec: BatchSpec

    @cached_property
    def channels(self) -> tuple[str, ...]:
        """The lines there are, in the order in which they are served."""
        if not self.is_metered:
            return (OWN,)
        counted = (_channel(number) for number, each in enumerate(self.spec.targets) if each.is_metered)
        own = () if all(each.is_metered for each in self.spec.targets) else (OWN,)
        return (SCORING, *counted, *own)

    @cached_property
    def is_metered(self) -> bool:
        """Whether any call is counted by somebody else."""
        spec = self.spec
        return any(each.is_metered for each in spec.targets) or any(e.is_metered for e in spec.evaluators)

    @property
    def names(self) -> list[str]:
        """The lines by name."""
        return [line_of(self.batch_id, channel) for channel in self.channels]

    def line_for(self, opening: p.Queued) -> str:
        """Say where an attempt has to wait."""
        return line_of(self.batch_id, self._channel_for(opening))

    def _channel_for(self, opening: p.Queued) -> str:
        if not self.is_metered:
            return OWN
        if opening.answer is not None:
            return SCORING
        number = opening.variant % len(self.spec.targets)
        return _channel(number) if self.spec.targets[number].is_metered else OWN


def target_of(channel: str) -> int | None:
    """Say whose line it is, by the target's number; None for a line of no one target."""
    return int(channel.removeprefix("target-")) if channel.startswith("target-") else None


def _channel(number: int) -> str:
    return f"target-{number}"
