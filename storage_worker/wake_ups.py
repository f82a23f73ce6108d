"""Wake-ups: the messages that name evaluations with new events. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from eventlog.codec import QuarantineReason, RejectedEntry
from projections.folds.change import QuarantineRow, quarantine_row

WakeUp = tuple[bytes, dict[bytes, bytes]]
"""An entry's id and fields."""
MAX_ID_BYTES = 800
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""What no `Name` may contain; all else that an envelope accepts, a wake-up may name."""


@dataclass(frozen=True, slots=True)
class WakeUpBatch:
    """The evaluations that a batch of wake-ups names, and the entries that are no wake-up."""

    evaluation_ids: list[str] = field(default_factory=list)
    rejected: list[QuarantineRow] = field(default_factory=list)


def parse_wake_ups(wake_ups: Sequence[WakeUp]) -> WakeUpBatch:
    """Read the evaluation ids; an entry without a valid one is kept with its reason."""
    batch = WakeUpBatch()
    for entry_id, fields in wake_ups:
        raw = fields.get(b"id", b"") if fields else b""
        try:
            evaluation_id = raw.decode()
            is_valid = 0 < len(raw) <= MAX_ID_BYTES and not _CONTROL.search(evaluation_id)
        except UnicodeDecodeError:
            is_valid = False
        if is_valid:
            batch.evaluation_ids.append(evaluation_id)
        elif fields:
            detail = "a wake-up has one field `id`: an evaluation id, UTF-8 without control characters"
            rejected = RejectedEntry(entry_id, QuarantineReason.BAD_WAKE_UP, detail, repr(fields).encode())
            batch.rejected.append(quarantine_row(None, rejected))
    return batch
