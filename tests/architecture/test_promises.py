"""Every promise of docs/explanation/promises.md has an acceptance test and a mutant that the test kills."""

import ast
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS
from tests.mutants.promises import Promise, promised, promises

ROOT = Path(__file__).parents[2]


def test_every_promise_has_its_row_and_no_row_is_left_over():
    """The table in docs/explanation/proofs.md has the promises in their words and order."""
    rows, lines = [each.words for each in promises()], promised()
    unlisted, left_over = set(lines) - set(rows), set(rows) - set(lines)
    assert not unlisted, f"add a row to the table in docs/explanation/proofs.md: {unlisted}"
    assert not left_over, f"not in docs/explanation/promises.md: {left_over}"
    assert rows == lines


@pytest.mark.parametrize("promise", promises(), ids=lambda promise: promise.words[:40])
def test_the_tests_and_mutants_of_a_promise_exist(promise: Promise):
    """Tests are acceptance tests that pytest collects, and mutants are in the catalogue."""
    for test in promise.tests:
        path, _, name = test.partition("::")
        assert path.startswith("tests/acceptance/"), test
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = {
            each.name for each in tree.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
        }
        assert name in functions, test
    known = {mutant.mechanism for mutant in MUTANTS}
    assert set(promise.mutants) - known == set()
