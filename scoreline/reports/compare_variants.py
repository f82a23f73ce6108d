"""Which variants of two batches belong together. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scoreline.problem import Problem
from scoreline.reports.labels import VariantLabel

UNKNOWN = (VariantLabel(0, "external", ""),)
"""The one variant of a batch that has no spec."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Variants of the left batch with those of the right, and by what they were found."""

    by: str
    pairs: tuple[tuple[VariantLabel, VariantLabel], ...]
    left_over: tuple[VariantLabel, ...] = ()
    right_over: tuple[VariantLabel, ...] = ()

    @property
    def numbers(self) -> list[tuple[int, int]]:
        """Both variants of each pair by their numbers."""
        return [(ours.number, theirs.number) for ours, theirs in self.pairs]


def pair_variants(left: Sequence[VariantLabel], right: Sequence[VariantLabel]) -> Pairing:
    """Pair variants by what they are; equally many that are not all alike, by their order."""
    left, right = left or UNKNOWN, right or UNKNOWN
    same = _matched("target and prompt", left, right, lambda label: (label.target, label.prompt))
    if len(left) == len(right):
        order = tuple(zip(left, right, strict=True))
        return same if len(same.pairs) == len(left) else Pairing("order", order)
    for pairing in (
        same,
        _matched("target", left, right, lambda label: label.target),
        _matched("prompt", left, right, lambda label: label.prompt),
    ):
        if pairing.pairs:
            return pairing
    raise Problem(
        f"They have no variant in common: {_named(left)} there, {_named(right)} here. "
        "Run both with a target or a prompt of the same name."
    )


def _matched(
    by: str,
    left: Sequence[VariantLabel],
    right: Sequence[VariantLabel],
    key: Callable[[VariantLabel], object],
) -> Pairing:
    """Pair what has the same key, where it is the only one on its side."""
    ours, theirs = _only(left, key), _only(right, key)
    pairs = tuple((ours[shared], theirs[shared]) for shared in ours if shared in theirs)
    taken_left, taken_right = {one.number for one, _ in pairs}, {other.number for _, other in pairs}
    return Pairing(
        by,
        pairs,
        tuple(label for label in left if label.number not in taken_left),
        tuple(label for label in right if label.number not in taken_right),
    )


def _only(
    labels: Sequence[VariantLabel], key: Callable[[VariantLabel], object]
) -> dict[object, VariantLabel]:
    found: dict[object, list[VariantLabel]] = {}
    for label in labels:
        found.setdefault(key(label), []).append(label)
    return {shared: alike[0] for shared, alike in found.items() if len(alike) == 1}


def _named(labels: Sequence[VariantLabel]) -> str:
    return ", ".join(dict.fromkeys(label.target for label in labels))
