"""The words this project avoids, and class names with more than one meaning.

python -m tests.vocabulary                     every place with a banned word, and a count for each folder
python -m tests.vocabulary executor docs       those below the given paths
python -m tests.vocabulary --classes           public class names that are defined more than once

Identifiers count as the words they are made of: `is_told` and `toldRate` have `told`.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]

BANNED = (
    # A sentence names the component that acts.
    *("nobody", "somebody", "whoever"),
    # Input and output are read, written, sent, returned, reported, logged.
    *("tell", "tells", "told", "telling", "say", "says", "said", "saying", "hear", "hears", "heard"),
    # Coined names, each with a standard one in docs/glossary.md.
    *("blot", "blotting", "crew", "desk", "farewell", "glance", "herald", "incarnation", "kit", "kits"),
    *("luck", "purse", "sighting", "sleepers", "telltale", "watchman"),
    *("go round", "in hand", "let go", "put up", "take down"),
    *("mend", "mended", "mends", "mending"),
    *("footing", "footings", "patience", "rooms", "stage", "stages", "standings"),
    *("trouble", "troubles", "walls"),
)
"""Words and pairs of words."""

ALLOWED: Mapping[str, str] = {
    "tests/vocabulary.py": "the list itself",
    "tests/architecture/test_vocabulary.py": "examples of what is found",
    "tests/histories/": "recorded events",
    "tests/fuzz/regressions/": "inputs that once failed",
    "projections/migrations/": "an applied migration is never edited",
}
"""Files and folders that may have banned words, and why."""

QUOTED = (
    "eval_stage_passed_total",
    "eval_stage_failed_total",
    "by (stage)",
    "{{stage}}",
    '"stage"',
    "`stage`",
    '"footing"',
    "`footing`",
    '"trouble"',
    '"incarnation"',
    '"in_hand"',
    "told_apart",
    "Say in one or two sentences why",
    "nothing in it is said to you",
    "tells you what to do",
)
"""Kept: metrics and their label, fields of `--json` and heartbeats, a column, the judge's prompt."""

SUFFIXES = (".py", ".md", ".sql", ".lua", ".json", ".yaml", ".yml", ".toml", ".sh")
FILES = ("Makefile", "Dockerfile")
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
"""Words of a text: those of identifiers in snake_case and CamelCase are apart."""
_BANNED = frozenset(BANNED)


class Place(NamedTuple):
    """A banned word in a file."""

    path: str
    line: int
    word: str
    text: str


def banned_words(text: str) -> Iterator[str]:
    """List the banned words and pairs of a line, each as often as it is there."""
    for name in QUOTED:
        text = text.replace(name, "")
    words = [word.lower() for word in _PARTS.findall(text)]
    yield from (word for word in words if word in _BANNED)
    yield from (pair for pair in map(" ".join, pairwise(words)) if pair in _BANNED)


def places(paths: Iterable[str]) -> Iterator[Place]:
    """Find banned words in files that are not allowed to have them."""
    for path in paths:
        if path.startswith(tuple(ALLOWED)):
            continue
        for number, line in enumerate((ROOT / path).read_text(encoding="utf-8").splitlines(), 1):
            for word in banned_words(line):
                yield Place(path, number, word, line.strip())


def repeated_classes(sources: Mapping[str, str]) -> dict[str, list[str]]:
    """List public classes of the same name, with the files that define them."""
    defined = defaultdict[str, list[str]](list)
    for path, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                defined[node.name].append(path)
    return {name: files for name, files in sorted(defined.items()) if len(files) > 1}


def tracked(below: Sequence[str] = ()) -> list[str]:
    """List the text files under version control, or where there is none, all that are there."""
    command = [
        "git",
        "-C",
        str(ROOT),
        "ls-files",
        "--cached",
        "--others",
        "--exclude-standard",
        "--",
        *below,
    ]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return [path for path in listed if path.endswith((*SUFFIXES, *FILES)) and (ROOT / path).is_file()]


def product_sources() -> dict[str, str]:
    """Return the Python files that are not tests."""
    paths = [path for path in tracked() if path.endswith(".py") and not path.startswith("tests/")]
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}


def main() -> int:
    """Print what is left; returns 1 if anything is."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="*", help="files and folders to search (default: all)")
    parser.add_argument("--classes", action="store_true", help="list repeated class names instead")
    args = parser.parse_args()
    if args.classes:
        repeated = repeated_classes(product_sources())
        for name, files in repeated.items():
            print(f"{name}: {', '.join(files)}")
        return int(bool(repeated))
    found = list(places(tracked(args.paths)))
    for place in found:
        print(f"{place.path}:{place.line}: {place.word}: {place.text[:120]}")
    for folder, many in Counter(str(Path(place.path).parent) for place in found).most_common():
        print(f"{many:5}  {folder}", file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
