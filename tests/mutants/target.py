"""The place a mutant names: found by its name, whatever file position, indentation or line breaks it has.

    package.module:Class.method    a function, method, class or constant of a Python module
    path/script.lua:name           a function of a Lua script
    path/queries.sql:name          a named query
    path/users.acl:name            the rights of a user of Redis
    path/file, package.module      all of it, for what stands outside of such parts

A fragment occurs once in its target. White space in a fragment stands for any white space.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple


class UnknownTargetError(LookupError):
    """The tree has no such file, or the file has no part of that name."""


class FragmentCountError(LookupError):
    """A fragment occurs in its target never, or more than once."""


class Source(NamedTuple):
    """A file, and the part of its text that a target names."""

    path: Path
    text: str
    start: int
    end: int

    def replace(self, old: str, new: str) -> "Source":
        """Replace the only occurrence of a fragment in this part."""
        pattern = re.compile(r"\s+".join(map(re.escape, old.split())))
        found = list(pattern.finditer(self.text[self.start : self.end]))
        if not old.strip() or len(found) != 1:
            raise FragmentCountError(f"{self.path} has {len(found)} times in that part: {old}")
        first, last = self.start + found[0].start(), self.start + found[0].end()
        return self._replace(
            text=self.text[:first] + new + self.text[last:], end=self.end + len(new) - last + first
        )


def find(root: Path, target: str) -> Source:
    """Find a target in a tree."""
    file, _, name = target.partition(":")
    path = root / file if "/" in file else _module(root, file)
    if not path.is_file():
        raise UnknownTargetError(f"{target}: there is no {path}")
    text = path.read_text(encoding="utf-8")
    if not name:
        return Source(path, text, 0, len(text))
    parts = _PARTS[path.suffix](text, name)
    if len(parts) != 1:
        raise UnknownTargetError(f"{path} has {len(parts)} parts named {name}")
    return Source(path, text, *parts[0])


def _module(root: Path, name: str) -> Path:
    """Return the file of a module or a package."""
    path = root.joinpath(*name.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _python(text: str, name: str) -> list[tuple[int, int]]:
    """Definitions of this name, with their decorators, down from the module."""
    bodies: list[list[ast.stmt]] = [ast.parse(text).body]
    found: list[ast.stmt] = []
    for word in name.split("."):
        found = [node for body in bodies for node in body if word in _names(node)]
        bodies = [getattr(node, "body", []) for node in found]
    starts = [0, *(line.end() for line in re.finditer("\n", text)), len(text)]
    return [(starts[_first_line(node) - 1], starts[node.end_lineno or node.lineno]) for node in found]


def _names(node: ast.stmt) -> Iterator[str]:
    """Names that a statement defines."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.name
        case ast.Assign():
            yield from (ast.unparse(target) for target in node.targets)
        case ast.AnnAssign():
            yield ast.unparse(node.target)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _matches(pattern: str) -> Callable[[str, str], list[tuple[int, int]]]:
    """Make a finder of the parts that a pattern with NAME in it describes."""

    def find_parts(text: str, name: str) -> list[tuple[int, int]]:
        named = re.compile(pattern.replace("NAME", re.escape(name)), re.MULTILINE | re.DOTALL)
        return [found.span() for found in named.finditer(text)]

    return find_parts


_PARTS: Mapping[str, Callable[[str, str], list[tuple[int, int]]]] = {
    ".py": _python,
    ".lua": _matches(r"^( *)(?:local )?function NAME\(.*?^\1end\b"),
    ".sql": _matches(r"^-- name: NAME$.*?(?=^-- name: |\Z)"),
    ".acl": _matches(r"^user NAME .*?(?=^$|\Z)"),
}
