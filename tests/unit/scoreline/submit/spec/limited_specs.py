"""Specs with limits for tests of their plans."""

from pathlib import Path

import pytest

from domain.batch_spec import Limits
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.errors import SpecError
from scoreline.submit.spec.plan import Plan

SPEC = "dataset: a.jsonl\ntargets: [simulated, {type: recorded, path: b.jsonl}]\nevaluators: [exact]\n"


def planned(folder: Path, more: str = "", made: Limits | None = None, **flags) -> Plan:
    path = folder / "scoreline.yaml"
    path.write_text(SPEC + more)
    return make_plan(path, flags, folder=folder, limits=made or Limits())


def refused(folder: Path, more: str = "", **flags) -> str:
    with pytest.raises(SpecError) as caught:
        planned(folder, more, **flags)
    return str(caught.value)
