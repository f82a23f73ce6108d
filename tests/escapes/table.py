"""The escape corpus as a table for docs/explanation/security.md: family, attack, mechanism per mode."""

from pathlib import Path

from tests.escapes.corpus import CORPUS
from tests.escapes.program import ExecutorRights

DOCUMENT = Path(__file__).parents[2] / "docs" / "explanation" / "security.md"
PRIVILEGE_MODES = (ExecutorRights.ROOT, ExecutorRights.UNPRIVILEGED)
BEGIN, END = "<!-- corpus: begin -->\n", "<!-- corpus: end -->\n"


def markdown() -> str:
    """Render the table."""
    lines = [
        f"{len(CORPUS)} programs, each in both privilege modes.",
        "",
        f"| family | attack | {' | '.join(PRIVILEGE_MODES)} |",
        "|---|---|---|---|",
    ]
    for program in CORPUS:
        mechanisms = [program.contained_by(rights) for rights in PRIVILEGE_MODES]
        lines.append(f"| {program.family} | {program.name} | {' | '.join(mechanisms)} |")
    return "\n".join(lines) + "\n"


def rewritten(text: str) -> str:
    """Put the table in its place in a document."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{markdown()}{END}{after}"
