"""The pairing of variants of two batches. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from scoreline.command_error import CommandError
from scoreline.reports.labels import VariantLabel

UNKNOWN = (VariantLabel(0, "external", ""),)
"""The only variant of a batch without a spec."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Pairs of variants of the left and the right batch, and the property they were paired by."""

    by: str
    pairs: tuple[tuple[VariantLabel, VariantLabel], ...]
    left_over: tuple[VariantLabel, ...] = ()
    right_over: tuple[VariantLabel, ...] = ()

    @property
    def numbers(self) -> list[tuple[int, int]]:
        """The numbers of both variants of each pair."""
        return [(ours.number, theirs.number) for ours, theirs in self.pairs]


def pair_variants(left: Sequence[VariantLabel], right: Sequence[VariantLabel]) -> Pairing:
    """Pair variants by target and prompt; by order where the counts are equal but not all match."""
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
    raise CommandError(
        f"They have no variant in common: {_named(left)} there, {_named(right)} here. "
        "Run both with a target or a prompt of the same name."
    )


def _matched(
    by: str,
    left: Sequence[VariantLabel],
    right: Sequence[VariantLabel],
    key: Callable[[VariantLabel], object],
) -> Pairing:
    """Pair variants with the same key, where the key is unique on both sides."""
    ours, theirs = _unique(left, key), _unique(right, key)
    pairs = tuple((ours[shared], theirs[shared]) for shared in ours if shared in theirs)
    taken_left, taken_right = {one.number for one, _ in pairs}, {other.number for _, other in pairs}
    return Pairing(
        by,
        pairs,
        tuple(label for label in left if label.number not in taken_left),
        tuple(label for label in right if label.number not in taken_right),
    )


def _unique(
    labels: Sequence[VariantLabel], key: Callable[[VariantLabel], object]
) -> dict[object, VariantLabel]:
    by_key: dict[object, list[VariantLabel]] = {}
    for label in labels:
        by_key.setdefault(key(label), []).append(label)
    return {shared: same[0] for shared, same in by_key.items() if len(same) == 1}


def _named(labels: Sequence[VariantLabel]) -> str:
    return ", ".join(dict.fromkeys(label.target for label in labels))
