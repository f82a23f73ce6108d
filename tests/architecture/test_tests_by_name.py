"""A module's tests are found by its name: `tests/*/<package>/test_<module>.py` or `test_<module>_*.py`.

Only modules that decide something count: types, protocols, constants and straight calls have no test of
their own.
"""

import ast
from collections.abc import Iterator
from pathlib import Path, PurePath

import pytest

from tests.vocabulary import product_sources

ROOT = Path(__file__).parents[2]
DECISIONS = (
    *(ast.If, ast.IfExp, ast.Match, ast.For, ast.AsyncFor, ast.While, ast.Try),
    *(ast.BoolOp, ast.Compare, ast.comprehension),
)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
IMPLEMENTATIONS = {
    "eventlog/memory": "eventlog/log",
    "executor/lanes/memory": "executor/lanes/contract",
    "executor/lanes/redis_lanes": "executor/lanes/contract",
    "projections/ledger/memory": "projections/ledger/contract",
    "projections/ledger/memory_batches": "projections/ledger/contract",
    "projections/ledger/opening_rows": "projections/ledger/contract",
    "projections/ledger/postgres": "projections/ledger/contract",
    "projections/ledger/provider_batches_memory": "projections/ledger/provider_batches",
    "projections/ledger/provider_batches_postgres": "projections/ledger/provider_batches",
    "projections/store/memory": "projections/store/contract",
    "projections/store/postgres": "projections/store/contract",
    "taskqueue/budget/account": "taskqueue/budget/contract",
    "taskqueue/budget/memory": "taskqueue/budget/contract",
    "taskqueue/budget/redis_budgets": "taskqueue/budget/contract",
}
"""Modules that a conformance suite tests, by the module of their contract."""


def decides(source: str) -> bool:
    """Whether a function of a module has a branch, a loop or a comparison."""
    functions = (each for each in ast.walk(ast.parse(source)) if isinstance(each, FUNCTIONS))
    return any(isinstance(part, DECISIONS) for function in functions for part in ast.walk(function))


def modules() -> Iterator[str]:
    """List the modules that decide something, as paths without their suffix."""
    for path, source in product_sources().items():
        folder, stem = PurePath(path).parts[0], PurePath(path).stem
        if folder not in {"bench", "docs"} and not stem.startswith("__") and decides(source):
            yield str(PurePath(path).with_suffix(""))


def topics(package: PurePath) -> set[str]:
    """List the topics of the test files of a package, in any suite."""
    return {path.stem.removeprefix("test_") for path in ROOT.glob(f"tests/*/{package}/test_*.py")}


def has_tests(module: str) -> bool:
    """Whether a file is named by a module, and not by a longer name of another."""
    path = PurePath(module)
    longer = {each.stem for each in (ROOT / path.parent).glob(f"{path.name}_*.py")}
    return any(
        topic == path.name or (topic.startswith(f"{path.name}_") and not names_one_of(topic, longer))
        for topic in topics(path.parent)
    )


def names_one_of(topic: str, names: set[str]) -> bool:
    """Whether a topic is that of one of these modules."""
    return any(topic == name or topic.startswith(f"{name}_") for name in names)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("X = [1 for _ in '12']", False),
        ("def f(x):\n    return g(x)", False),
        ("def f(x):\n    return x or 1", True),
    ],
)
def test_only_functions_that_decide_need_tests(source: str, expected: bool) -> None:
    """Constants and straight calls do not."""
    assert decides(source) == expected


def test_the_tests_of_a_module_are_found_by_its_name() -> None:
    """No module that decides something is tested only through its callers."""
    assert [each for each in modules() if not has_tests(IMPLEMENTATIONS.get(each, each))] == []


def test_each_implementation_of_a_contract_exists() -> None:
    """The table has no module that is gone."""
    assert [each for each in IMPLEMENTATIONS if not (ROOT / f"{each}.py").exists()] == []
