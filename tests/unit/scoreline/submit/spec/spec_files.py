"""Specs for tests of their plans."""

from pathlib import Path

import pytest

from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.errors import SpecError
from scoreline.submit.spec.plan import Plan


def planned(folder: Path, text: str | None = None, **flags) -> Plan:
    path = None
    if text is not None:
        path = folder / "scoreline.yaml"
        path.write_text(text)
    return make_plan(path, flags, folder=Path("/elsewhere"))


def refused(folder: Path, text: str | None = None, **flags) -> str:
    with pytest.raises(SpecError) as caught:
        planned(folder, text, **flags)
    return str(caught.value)
