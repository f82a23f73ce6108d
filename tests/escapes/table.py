"""The table of the corpus, as Markdown for docs/security.md: family, attack, wall on each footing."""

from pathlib import Path

from executor.sandbox.walls import Footing
from tests.escapes.corpus import CORPUS

DOCUMENT = Path(__file__).parents[2] / "docs" / "security.md"
BEGIN, END = "<!-- corpus: begin -->\n", "<!-- corpus: end -->\n"


def markdown() -> str:
    """Render the table."""
    lines = [
        f"{len(CORPUS)} programs, each on both footings.",
        "",
        "| family | attack | contained by, root with its own uid | in an unprivileged user namespace |",
        "|---|---|---|---|",
    ]
    for program in CORPUS:
        walls = [program.contained_by(footing) for footing in (Footing.OWN_UID, Footing.USER_NAMESPACE)]
        lines.append(f"| {program.family} | {program.name} | {walls[0]} | {walls[1]} |")
    return "\n".join(lines) + "\n"


def rewritten(text: str) -> str:
    """Put the table in its place in a document."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}{markdown()}{END}{after}"
