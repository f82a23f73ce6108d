"""What wake-ups ask for. Pure."""

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
class Woken:
    """What a batch of wake-ups asks for."""

    evaluation_ids: list[str] = field(default_factory=list)
    refused: list[QuarantineRow] = field(default_factory=list)


def read_wake_ups(wake_ups: Sequence[WakeUp]) -> Woken:
    """Take the evaluation ids out; what is no id is kept with its reason."""
    woken = Woken()
    for entry_id, fields in wake_ups:
        raw = fields.get(b"id", b"") if fields else b""
        try:
            evaluation_id = raw.decode()
            usable = 0 < len(raw) <= MAX_ID_BYTES and not _CONTROL.search(evaluation_id)
        except UnicodeDecodeError:
            usable = False
        if usable:
            woken.evaluation_ids.append(evaluation_id)
        elif fields:
            detail = "a wake-up has one field `id`: an evaluation id, UTF-8 without control characters"
            refused = RejectedEntry(entry_id, QuarantineReason.BAD_WAKE_UP, detail, repr(fields).encode())
            woken.refused.append(quarantine_row(None, refused))
    return woken
