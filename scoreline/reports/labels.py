"""What the variants of a batch are called. Pure."""

from typing import NamedTuple

from domain.batch_spec import unpack
from scoreline.servers.availability import redact


class VariantLabel(NamedTuple):
    """A prompt and a target, by the names that people gave them."""

    number: int
    target: str
    prompt: str

    def __str__(self) -> str:
        return f"{self.target} · {self.prompt}"


def variant_labels(spec: str | None) -> tuple[VariantLabel, ...]:
    """Name the variants of a batch; an external one has none that anybody knows."""
    if spec is None:
        return ()
    return tuple(
        # People may name a target by its URL, and a URL may have a password in it.
        VariantLabel(variant.number, redact(variant.target.label), variant.prompt)
        for variant in unpack(spec).variants
    )
