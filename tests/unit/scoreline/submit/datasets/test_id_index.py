"""Ids of cases: remembered in little memory, and found again."""

import json
import tracemalloc
from pathlib import Path

from scoreline.submit.datasets import id_index
from scoreline.submit.datasets.id_index import IdIndex
from tests.unit.scoreline.submit.datasets.case_files import refused, written


def test_an_id_that_comes_again_names_the_first(tmp_path):
    """Of two rows with one id, both lines are named."""
    text = "".join(json.dumps({"id": key}) + "\n" for key in ("a", "b", "a"))
    bad = refused(written(tmp_path, "a.jsonl", text))
    assert (bad.line, bad.reason) == (3, "the id 'a' was there before, in line 1")


def test_a_position_that_equals_another_rows_id_is_refused(tmp_path):
    """A row without an id is named by its position, which must not be the id of another row."""
    bad = refused(written(tmp_path, "a.jsonl", '{"id": "2"}\n{"input": 1}\n'))
    assert bad.line == 2


def test_ids_are_remembered_in_little_memory():
    """A million ids of any length take less than 200 MB: here a twentieth of them."""
    tracemalloc.start()
    seen = IdIndex()
    for number in range(50_000):
        assert seen.add(f"{'long' * 20}-{number}", number) is None
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 200e6 / 20
    assert seen.add(f"{'long' * 20}-77", 60_000) == 77


def test_ids_on_disk_are_found_like_those_in_memory(monkeypatch):
    """A repeated id is found however many ids lie between, and the table on disk is removed."""
    monkeypatch.setattr(id_index, "MAX_IN_MEMORY", 10)
    with IdIndex() as ids:
        assert [ids.add(f"id-{number}", number) for number in range(1, 96)] == [None] * 95
        assert len(ids._newest) < 10
        assert (ids.add("id-1", 200), ids.add("id-77", 201), ids.add("id-94", 202)) == (1, 77, 94)
        assert ids._older is not None
        folder = ids._older.execute("PRAGMA database_list").fetchone()[2]
    assert not Path(folder).exists()
