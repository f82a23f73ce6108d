"""Rows of arbitrary model output for tests of exports."""

import json

from hypothesis import strategies as st

from projections.queries.export import ExportRow
from scoreline.reports.export_record import Record, make_record
from scoreline.reports.labels import VariantLabel
from tests.builders import START

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))


def record(text: str = "4", *, status: str = "completed", verdict: str | None = "failed") -> Record:
    judged = json.dumps([{"evaluator": "exact", "score": 0.0, "passed": False, "reason": text}])
    error = json.dumps({"kind": "permanent", "message": text})
    row = ExportRow(
        "e-1", text, 0, 1, status, verdict, 0.0, judged, text, json.dumps(text), json.dumps([text]), error,
        None, 1, 7, None, 1.5, 0, bridged=False, ended_at=START,
    )  # fmt: skip
    return make_record(row, [VariantLabel(0, text, text)])
