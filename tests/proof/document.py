"""Write the tables of docs/explanation/proofs.md that are derived from code: faults, and mutants.

python -m tests.proof.document
"""

from collections.abc import Iterator
from pathlib import Path

from tests.chaos.faults import FAULTS
from tests.mutants.catalogue import MUTANTS

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "proofs.md"


def faults() -> Iterator[str]:
    """One row per fault of the matrix."""
    yield f"{len(FAULTS)} faults. Run one with `python -m tests.chaos --fault NAME --runs 20`.\n"
    yield "| fault | scenario and expectation |"
    yield "|---|---|"
    for name, fault in FAULTS.items():
        yield f"| `{name}` | {' '.join(fault.sentence.split())} |"


def mutants() -> Iterator[str]:
    """One row per mechanism; several mutants of one mechanism share a row."""
    yield f"{len(MUTANTS)} mutants. Run some with `python -m tests.mutants --only WORD`.\n"
    yield "| without … | a test of these files must fail |"
    yield "|---|---|"
    for mechanism in dict.fromkeys(mutant.mechanism for mutant in MUTANTS):
        tests = dict.fromkeys(
            Path(test.partition("::")[0]).name
            for mutant in MUTANTS
            if mutant.mechanism == mechanism
            for test in mutant.tests
        )
        yield f"| {mechanism} | {', '.join(f'`{test}`' for test in tests)} |"


def rewrite(text: str) -> str:
    """Replace the derived tables of the page."""
    for name, rows in (("faults", faults()), ("mutants", mutants())):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        head, _, rest = text.partition(begin)
        text = "\n".join([head + begin, *rows, end + rest.partition(end)[2]])
    return text


if __name__ == "__main__":
    PAGE.write_text(rewrite(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
