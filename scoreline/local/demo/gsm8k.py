"""What the demo runs on: 200 questions of GSM8K, two models' answers, and the authors' verdict on each."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data" / "gsm8k"
SPEC = FOLDER / "scoreline.yaml"


def published(targets: list[str]) -> dict[str, dict[str, bool]]:
    """Read whether the authors found each answer right: by target, then by the case's id."""
    lines = (FOLDER / "solutions.jsonl").read_text(encoding="utf-8").splitlines()
    rows: list[dict[str, Any]] = [json.loads(line) for line in lines]
    # The cases have no ids of their own: each is called by its position.
    return {
        target: {str(place): row[target]["is_correct"] for place, row in enumerate(rows, 1)}
        for target in targets
    }
