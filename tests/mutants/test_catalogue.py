"""The catalogue of mechanisms is true to the tree, so that `make mutants` tries each of them."""

from collections import Counter
from pathlib import Path

import pytest

from tests.mutants.catalogue import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.mechanism)
def test_each_patch_applies_and_its_tests_exist(mutant: Mutant) -> None:
    """The target is found, has the fragment once, still compiles without it, and tests guard it."""
    mutated = mutant.apply(ROOT)
    assert mutated.text != mutated.path.read_text(encoding="utf-8")
    if mutated.path.suffix == ".py":
        compile(mutated.text, mutated.path, "exec")
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name}" in (ROOT / path).read_text(encoding="utf-8")


def test_each_mechanism_is_named_once() -> None:
    """Documents and `--only` refer to mechanisms by their names."""
    assert [
        name for name, count in Counter(mutant.mechanism for mutant in MUTANTS).items() if count > 1
    ] == []
