"""The labels of the variants of a batch. Pure."""

from typing import NamedTuple

from domain.batch_spec import unpack
from scoreline.servers.availability import redact


class VariantLabel(NamedTuple):
    """The number of a variant, and the names of its target and prompt in the spec."""

    number: int
    target: str
    prompt: str

    def __str__(self) -> str:
        return f"{self.target} · {self.prompt}"


def variant_labels(spec: str | None) -> tuple[VariantLabel, ...]:
    """Return the labels of a batch's variants; none for an external batch, which has no spec."""
    if spec is None:
        return ()
    return tuple(
        # The name of a target may be its URL, which may contain a password.
        VariantLabel(variant.number, redact(variant.target.label), variant.prompt)
        for variant in unpack(spec).variants
    )
