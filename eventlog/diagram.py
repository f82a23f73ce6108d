"""The state diagram of the docs, drawn from the lifecycle's tables: it can't disagree with them.

python -m eventlog.diagram ARCHITECTURE.md
"""

import re
import sys
from pathlib import Path

from eventlog.lifecycle import FINAL, OPENINGS, SETTLED, TRANSITIONS, Phase


def state_diagram() -> str:
    """Draw the lifecycle as a Mermaid diagram."""
    lines = ["stateDiagram-v2", "    [*] --> queued: queued (sequence 0)"]
    for phase, accepted in TRANSITIONS.items():
        lines += [f"    {phase} --> {following}: {event}" for event, following in accepted.items()]
    openings = ", ".join(OPENINGS)
    lines += [
        "    retrying --> queued: queued of the next attempt",
        *[f"    {phase} --> queued: queued by an operator" for phase in _in_order(SETTLED)],
        f"    note right of queued: sequence 0 of a higher attempt - {openings} fits every open state",
        *[f"    {phase} --> [*]" for phase in _in_order(FINAL)],
    ]
    return "\n".join(lines)


def _in_order(phases: frozenset[Phase]) -> list[Phase]:
    return [phase for phase in Phase if phase in phases]


def redraw(text: str) -> str:
    """Put the diagram between its markers in a document."""
    begin, end = "<!-- lifecycle -->", "<!-- /lifecycle -->"
    drawn = f"{begin}\n```mermaid\n{state_diagram()}\n```\n{end}"
    return re.sub(f"{begin}.*?{end}", lambda _: drawn, text, flags=re.DOTALL)


if __name__ == "__main__":
    document = Path(sys.argv[1])
    document.write_text(redraw(document.read_text(encoding="utf-8")), encoding="utf-8")
