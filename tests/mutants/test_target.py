"""Targets are found by name in every language of the tree, and fragments by their words."""

from pathlib import Path

import pytest

from tests.mutants.target import FragmentCountError, UnknownTargetError, find

PYTHON = """LIMIT: int = 3


class Outer:
    @property
    def first(self):
        return call(
            1,
        )

    def second(self):
        def inner():
            return 1

        return inner
"""
LUA = """local function first()
  if true then return 1 end
end

local function second()
  return 1
end
"""
SQL = "-- name: first\nSELECT 1\n\n-- name: first_page\nSELECT 2\n"
ACL = "user first on\n  +get\n\nuser second on\n  +get\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with a file of each language."""
    package = tmp_path / "package"
    package.mkdir()
    for name, text in (
        ("module.py", PYTHON),
        ("script.lua", LUA),
        ("queries.sql", SQL),
        ("users.acl", ACL),
    ):
        (package / name).write_text(text, encoding="utf-8")
    (package / "__init__.py").write_text("import module\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("target", "begins", "ends"),
    [
        ("package.module:LIMIT", "LIMIT", "= 3\n"),
        ("package.module:Outer.first", "    @property", "        )\n"),
        ("package.module:Outer.second.inner", "        def inner", "return 1\n"),
        ("package/script.lua:first", "local function first", "1 end\nend"),
        ("package/queries.sql:first", "-- name: first\n", "SELECT 1\n\n"),
        ("package/users.acl:second", "user second", "+get\n"),
        ("package", "import", "module\n"),
    ],
)
def test_a_target_is_the_part_of_that_name(tree: Path, target: str, begins: str, ends: str) -> None:
    """Decorators belong to a function, and a function ends where the next begins."""
    source = find(tree, target)
    part = source.text[source.start : source.end]
    assert part.startswith(begins)
    assert part.endswith(ends)


@pytest.mark.parametrize(
    "target", ["package.other:first", "package.module:Outer.third", "package/users.acl:third"]
)
def test_a_target_that_is_gone_is_reported(tree: Path, target: str) -> None:
    """A file or a part that was renamed is no silent success."""
    with pytest.raises(UnknownTargetError):
        find(tree, target)


def test_line_breaks_and_indentation_do_not_matter(tree: Path) -> None:
    """A fragment on one line matches a call that is spread over several."""
    mutated = find(tree, "package.module:Outer.first").replace("call( 1, )", "None")
    assert "        return None\n" in mutated.text


def test_a_fragment_elsewhere_in_the_file_does_not_count(tree: Path) -> None:
    """`return 1` stands twice in the script, and once in the function."""
    mutated = find(tree, "package/script.lua:second").replace("return 1", "return 2")
    assert mutated.text == LUA.replace("  return 1\n", "  return 2\n")


@pytest.mark.parametrize("fragment", ["return", "raise", " "])
def test_a_fragment_occurs_once(tree: Path, fragment: str) -> None:
    """Twice, never, or nothing at all: the patch would be of another mechanism, or of none."""
    with pytest.raises(FragmentCountError):
        find(tree, "package.module:Outer.second").replace(fragment, "pass")
