"""The styles of dispositions on the screen."""

from scoreline.reports.replay.timeline_entry import EntryDisposition

STYLES = {
    EntryDisposition.APPLIED: "green",
    EntryDisposition.STALE: "yellow",
    EntryDisposition.LATE: "yellow",
    EntryDisposition.DUPLICATE: "dim",
    EntryDisposition.WAITING: "cyan",
    EntryDisposition.REJECTED: "red",
    EntryDisposition.CONFLICT: "red",
    EntryDisposition.UNSTORABLE: "red",
}
