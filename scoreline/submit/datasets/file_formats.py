"""Files of cases: which format a name stands for, and their bytes, unpacked and without a mark."""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, cast

from scoreline.submit.datasets.errors import DatasetError

OnRead = Callable[[int], object]
"""Called with the number of bytes that were just read."""

ALWAYS_UNPACKED = 64 * 1024 * 1024
"""Bytes that a packed file may unfold to, whatever its own size."""
MAX_RATIO = 100
"""Beyond that, how many times its own size."""

_BUFFER = 256 * 1024
_GZIP = b"\x1f\x8b"
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")


class DatasetFormat(StrEnum):
    """How the records of a file are written down."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    YAML = "yaml"


_SUFFIXES = {
    ".jsonl": DatasetFormat.JSONL,
    ".ndjson": DatasetFormat.JSONL,
    ".json": DatasetFormat.JSON,
    ".csv": DatasetFormat.CSV,
    ".yaml": DatasetFormat.YAML,
    ".yml": DatasetFormat.YAML,
}


def format_of(path: Path) -> DatasetFormat:
    """Derive a file's format from its suffix; raises `DatasetError`."""
    found = _SUFFIXES.get(_suffix(path))
    if found is None:
        known = ", ".join(_SUFFIXES)
        raise DatasetError(path, f"unknown suffix: the name must end in {known}, or these with .gz")
    return found


def looks_like_file(text: str) -> bool:
    """Whether a text names a file: it has the suffix of a known format."""
    return _suffix(Path(text)) in _SUFFIXES


def stem_of(path: Path) -> str:
    """Return a file's name without its suffixes: `cases` for `cases.jsonl.gz`."""
    return Path(_without_gz(path)).stem


def unit_of(path: Path) -> str:
    """Return the unit of positions in this file."""
    return "line" if format_of(path) in (DatasetFormat.JSONL, DatasetFormat.CSV) else "record"


def _suffix(path: Path) -> str:
    return Path(_without_gz(path)).suffix.lower()


def _without_gz(path: Path) -> str:
    return path.name[:-3] if path.name.lower().endswith(".gz") else path.name


@contextmanager
def opened(path: Path, *, on_read: OnRead | None = None) -> Iterator[BinaryIO]:
    """Lend a file's text as UTF-8 bytes; whatever is wrong with the file is a `DatasetError`."""
    with ExitStack() as stack:
        try:
            file = _MeteredFile(path, on_read)
            stream = stack.enter_context(_buffered(file))
            if path.name.lower().endswith(".gz"):
                unpacked = gzip.GzipFile(fileobj=stream)
                stream = stack.enter_context(_buffered(_BoundedUnpacking(path, file, unpacked)))
            _skip_mark(path, stream)
            yield stream
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise DatasetError(path, f"not readable as gzip ({error})") from None
        except OSError as error:
            raise DatasetError(path, f"can't be read: {error.strerror or error}") from None


def _buffered(raw: object) -> io.BufferedReader:
    return io.BufferedReader(cast("io.RawIOBase", raw), _BUFFER)


class _MeteredFile(io.FileIO):
    """A file that reports how much of it was read."""

    def __init__(self, path: Path, on_read: OnRead | None) -> None:
        super().__init__(path)
        self._on_read = on_read
        self.count = 0

    def readinto(self, buffer: bytearray) -> int | None:  # type: ignore[override]  # the protocol's buffer
        """Read, and report the number of bytes."""
        count = super().readinto(buffer)
        self.count += count or 0
        if self._on_read and count:
            self._on_read(count)
        return count


class _BoundedUnpacking(io.RawIOBase):
    """Unpacks a file, but not one that unfolds without measure."""

    def __init__(self, path: Path, file: _MeteredFile, unpacked: gzip.GzipFile) -> None:
        self._path, self._file, self._unpacked = path, file, unpacked
        self._count = 0

    def readable(self) -> bool:
        """Allow a buffer around it."""
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]  # the protocol's buffer
        """Unpack on; raises `DatasetError` beyond the limit."""
        count = self._unpacked.readinto(buffer)
        self._count += count
        if self._count > max(ALWAYS_UNPACKED, MAX_RATIO * self._file.count):
            raise DatasetError(
                self._path,
                f"{self._file.count:,} bytes of gzip unfold to more than {MAX_RATIO} times as many: "
                "if that is meant, unpack the file first (gunzip) and name the unpacked one",
            )
        return count


def _skip_mark(path: Path, stream: io.BufferedReader) -> None:
    beginning = stream.peek(4)
    if beginning.startswith(_GZIP):
        raise DatasetError(path, "the file is compressed with gzip: its name must end in .gz")
    if beginning.startswith(_UTF16_MARKS):
        raise DatasetError(path, "the text is UTF-16: save it as UTF-8")
    if beginning.startswith(_UTF8_MARK):
        stream.read(len(_UTF8_MARK))
