"""The pairs of variants that a comparison makes."""

import pytest

from scoreline.command_error import CommandError
from scoreline.reports.compare_variants import pair_variants
from scoreline.reports.labels import VariantLabel


def labels(*names: str) -> list[VariantLabel]:
    return [VariantLabel(number, *name.split("/")) for number, name in enumerate(names)]


@pytest.mark.parametrize(
    ("left", "right", "by", "numbers"),
    [
        (("a/p",), ("b/p",), "order", [(0, 0)]),
        (("a/p", "b/p"), ("b/p", "a/p"), "target and prompt", [(0, 1), (1, 0)]),
        (("a/p", "b/p"), ("c/p", "a/p"), "order", [(0, 0), (1, 1)]),
        (("a/p", "b/p"), ("b/p",), "target and prompt", [(1, 0)]),
        (("a/p", "b/p"), ("b/q",), "target", [(1, 0)]),
        (("a/p", "a/q"), ("c/q",), "prompt", [(1, 0)]),
        ((), ("b/p",), "order", [(0, 0)]),
    ],
)
def test_variants_are_paired_by_target_and_prompt_or_by_order(
    left: tuple[str, ...], right: tuple[str, ...], by: str, numbers: list[tuple[int, int]]
) -> None:
    """Order decides only where both batches have equally many variants that do not all match."""
    pairing = pair_variants(labels(*left), labels(*right))
    assert (pairing.by, pairing.numbers) == (by, numbers)


def test_variants_that_have_nothing_in_common_are_not_compared() -> None:
    """Batches without a common target or prompt raise a problem with the names of both."""
    with pytest.raises(CommandError, match="no variant in common: a, b there, c here"):
        pair_variants(labels("a/p", "b/p"), labels("c/p"))
