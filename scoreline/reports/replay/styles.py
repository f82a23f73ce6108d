"""How fates look."""

from scoreline.reports.replay.lines import Fate

STYLES = {
    Fate.APPLIED: "green",
    Fate.STALE: "yellow",
    Fate.LATE: "yellow",
    Fate.DUPLICATE: "dim",
    Fate.WAITING: "cyan",
    Fate.REJECTED: "red",
    Fate.CONFLICT: "red",
    Fate.UNSTORABLE: "red",
}
