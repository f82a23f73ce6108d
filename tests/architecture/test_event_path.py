"""The path of an event from executor to scorecard: as short as ARCHITECTURE.md lists it.

One evaluation is completed by the executor's pipeline, on real servers in this process, while every
function of the project that is entered is recorded: from the executor's `close` step to the commit of the
scorecard. A file counts once any of its functions is entered; a hop is a call from one file to a function
of another, each counted once.
"""

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

from eventlog import payloads as p
from eventlog.event_queue import EventQueue, OwnedAttempt, QueueSettings
from eventlog.redis_streams import RedisEventLog
from executor.attempt import AttemptPipeline, ClaimedAttempt
from storage_worker import app
from storage_worker.storage import Storage
from tests.builders import BATCH, PAYLOADS, history
from tests.integration.worker import Site, site, worker
from tests.waiting import until

ROOT = Path(__file__).parents[2]
FIRST_OF_STORAGE = app.raw_parser.__code__
"""Entered when the storage worker has read a wake-up."""
AFTER_COMMIT = Storage._count.__code__
"""Entered when the transaction has committed."""
MAX_FILES = 30
MAX_HOPS = 55
LONG = timedelta(minutes=10)
COMPLETED = cast("p.Completed", PAYLOADS["completed"])


class CallRecorder:
    """The project's functions on the path, in the order of their first call.

    Tasks of the executor count until the storage worker has received the wake-up; what they do afterwards,
    with Redis' acknowledgement, is not on the path to the scorecard.
    """

    def __init__(self) -> None:
        self.functions: dict[CodeType, None] = {}
        self.hops: set[tuple[str, CodeType]] = set()
        """Calls from one file of the project to a function of another."""
        self._writers: set[object] = set()
        self._is_received = False
        self._is_over = False

    @property
    def files(self) -> list[str]:
        """The files that were entered, in order."""
        return list(dict.fromkeys(map(_path_of, self.functions)))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what is called while the block lasts, up to the commit."""
        sys.setprofile(self._on_event)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _on_event(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event != "call" or self._is_over or not _is_ours(code):
            return
        task = _current_task()
        self._is_received = self._is_received or code is FIRST_OF_STORAGE
        if not self._is_received:
            self._writers.add(task)
        elif task in self._writers:
            return
        self._is_over = code is AFTER_COMMIT
        if not self._is_over:
            self._add(code, _calling_file(frame))

    def _add(self, code: CodeType, caller: str | None) -> None:
        self.functions[code] = None
        is_operator = code.co_name.startswith("__")
        if caller is not None and caller != _path_of(code) and not is_operator:
            self.hops.add((caller, code))


def _current_task() -> object:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _calling_file(frame: FrameType) -> str | None:
    """Return the file of the nearest function of the project that led here."""
    above = frame.f_back
    while above is not None and not _is_in_project(above.f_code):
        above = above.f_back
    return _path_of(above.f_code) if above else None


def _path_of(code: CodeType) -> str:
    return str(Path(code.co_filename).relative_to(ROOT))


def _is_in_project(code: CodeType) -> bool:
    path = code.co_filename
    return path.startswith(f"{ROOT}/") and "/.venv/" not in path and "/tests/" not in path


def _is_ours(code: CodeType) -> bool:
    """Whether this is a named function of a package of the project."""
    return code.co_name[0] != "<" and _is_in_project(code)


class Slot:
    """The slot of an attempt, which is freed when the event is recorded: not on the event's path."""

    def mark_recorded(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ClosingAttempt:
    """What the close step reads of an attempt."""

    owned: OwnedAttempt
    task: Slot = field(default_factory=Slot)


@dataclass(frozen=True, slots=True)
class RunningAttempt:
    """An executor's attempt that has its response and its score."""

    here: Site
    evaluation_id: str
    owned: OwnedAttempt

    async def complete(self) -> None:
        """Append the closing event by the executor's own step, and wait for the scorecard."""
        attempt = cast("ClaimedAttempt", ClosingAttempt(self.owned))
        AttemptPipeline._close(cast("AttemptPipeline", None), attempt, COMPLETED)
        await until(self._is_completed)

    async def _is_completed(self) -> bool:
        return await self.here.state(self.evaluation_id) == "completed"


async def _started(here: Site, queue: EventQueue, evaluation_id: str) -> RunningAttempt:
    await here.append(history("queued", evaluation_id=evaluation_id))
    claim = cast("p.Provisioning", PAYLOADS["provisioning"])
    claimed = await queue.claim(evaluation_id, BATCH, attempt=1, claim=claim)
    for word in ("running", "responded", "scored"):
        claimed.attempt.record(cast("Any", PAYLOADS[word]))
    await claimed.attempt.acknowledged()

    async def is_stored() -> bool:
        return await here.state(evaluation_id) == "responded" and await here.pending() == 0

    await until(is_stored)
    return RunningAttempt(here, evaluation_id, claimed.attempt)


async def _recorded(redis_url: str, postgres_url: str) -> CallRecorder:
    """Record the path of a closing event; another evaluation goes before it and fills the caches."""
    settings = QueueSettings(release_interval=3600)
    async with (
        site(redis_url, postgres_url) as here,
        worker(here, gap_timeout=LONG, scan_interval=LONG, claim_idle=LONG),
        EventQueue(RedisEventLog(here.redis), source="executor", settings=settings) as queue,
    ):
        await (await _started(here, queue, "first")).complete()
        second = await _started(here, queue, "second")
        recorder = CallRecorder()
        with recorder.recording():
            await second.complete()
        return recorder


def _listed() -> list[str]:
    """Read the files of the numbered list in ARCHITECTURE.md."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    section = re.search(r"<!-- event path -->(.*?)<!-- /event path -->", text, re.DOTALL)
    return re.findall(r"^\d+\. `([\w/]+\.py)`", section[1], re.MULTILINE) if section else []


async def test_the_path_of_an_event_is_the_list_in_the_architecture_document(
    redis_url: str, postgres_url: str
) -> None:
    """The files are those of the document, in order; files and calls between them are few."""
    recorder = await _recorded(redis_url, postgres_url)
    assert recorder.files == _listed()
    assert len(recorder.files) <= MAX_FILES
    assert len(recorder.hops) <= MAX_HOPS
