"""The mechanisms that the guarantees rest on: one file a package, read in the order of their names.

    ["the name of the mechanism"]
    "package.module:Class.method" = ["fragment", "what replaces it, or nothing"]
    tests = ["tests that must notice its loss"]

`tests/mutants/target.py` explains targets and fragments.
"""

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.mutants.target import Source, find


class Mutant(NamedTuple):
    """One mechanism, where it is, the patch that removes it, and the tests that must notice its loss."""

    mechanism: str
    target: str
    old: str
    new: str
    tests: tuple[str, ...]

    def apply(self, root: Path) -> Source:
        """Return the file of the target as it reads without the mechanism."""
        return find(root, self.target).replace(self.old, self.new)


def _read(path: Path) -> Iterator[Mutant]:
    for mechanism, entry in tomllib.loads(path.read_text(encoding="utf-8")).items():
        tests = tuple(entry.pop("tests"))
        [(target, (old, *new))] = entry.items()
        yield Mutant(mechanism, target, old, new[0] if new else "", tests)


MUTANTS = tuple(mutant for path in sorted(Path(__file__).parent.glob("*.toml")) for mutant in _read(path))
