"""Limits of dataset files that hold before a parser has filled the memory."""

import gzip

from scoreline.submit.datasets import file_formats
from scoreline.submit.datasets.rows import file_rows
from tests.unit.scoreline.submit.datasets.case_files import unreadable, written


def test_a_gzip_bomb_is_refused(tmp_path, monkeypatch):
    """Above a minimum size the compression ratio is limited; smaller files are read whole."""
    path = written(tmp_path, "a.jsonl.gz", b'{"input": "%s"}\n' % (b"x" * 100_000) * 20)
    assert len(list(file_rows(path))) == 20
    monkeypatch.setattr(file_formats, "ALWAYS_UNPACKED", 1_000_000)
    assert "more than 100 times as many" in unreadable(path)
    incompressible = b"".join(b'{"input": "%d"}\n' % (number**9) for number in range(60_000))
    honest = tmp_path / "b.jsonl.gz"
    honest.write_bytes(gzip.compress(incompressible))
    assert len(list(file_rows(honest))) == 60_000
