"""What a plan knows of itself."""

from pathlib import Path

from scoreline.submit.spec.builder import make_plan


def test_files_are_the_dataset_and_the_recorded_answers(tmp_path: Path) -> None:
    """A batch of synthetic cases reads none."""
    for name in ("cases.jsonl", "first.jsonl", "second.jsonl"):
        (tmp_path / name).write_text('{"id": "1", "input": "a", "expected": "a", "output": "a"}\n')
    flags = {"dataset": "cases.jsonl", "targets": ["recorded:first.jsonl", "recorded:second.jsonl"]}
    plan = make_plan(None, flags, folder=tmp_path)
    assert [path.name for path in plan.files] == ["cases.jsonl", "first.jsonl", "second.jsonl"]
    assert make_plan(None, {"mode": "simulated", "limit": 3}, folder=tmp_path).files == []
