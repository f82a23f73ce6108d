"""The catalogue of mechanisms is true to the tree, so that `make mutants` tries each of them."""

from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mechanism)
def test_each_mechanism_is_in_its_file_once(mutant: Mutant) -> None:
    """Its text is there once, and so are the tests that guard it."""
    assert (ROOT / mutant.path).read_text(encoding="utf-8").count(mutant.old) == 1
    assert all((ROOT / test.partition("::")[0]).exists() for test in mutant.tests)
