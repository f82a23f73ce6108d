"""The path of an event from executor to scorecard: as short as ARCHITECTURE.md lists it.

One evaluation is completed on real servers, in this process, while every function that is entered is
recorded.

The path begins with the executor's `close` step and ends when the transaction with the scorecard has
committed. On it is everything that the event waits for: the step itself, with the slot that it frees; the
sender of the event queue, until Redis has executed the append; the storage worker, from the delivery of the
wake-up. What the executor does with the response of Redis is not on it, nor are loops that run beside it.

A file counts if any function in it is entered: methods, properties, lambdas and context managers included.
A hop is a call from one file to a function of another, each pair counted once; a call through a library
(asyncio, FastStream, contextlib) counts from the project's function that led to it. Left out are only the
standard library, third-party packages, and as hops the operators of a value (`VALUE_OPERATORS`).

The event is one that an executor sends, with an answer, a score and a reason, so that redaction and totals
have their work. No event of its type was stored before it, and the caches of functions are cleared: no work
that belongs to an event is hidden because another event did it.
"""

import functools
import gc
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, cast

from eventlog import payloads as p
from eventlog.event_queue import EventQueue, OwnedAttempt, QueueSettings
from eventlog.redis_streams import RedisEventLog
from eventlog.scripts import Script
from executor.attempt import AttemptPipeline, ClaimedAttempt
from executor.contract import Permanent
from executor.outcome import completed
from executor.slot_pool import ActiveTask, SlotPool
from projections.store.contract import CommitResult
from projections.store.postgres import PostgresStore
from storage_worker import app
from taskqueue.tasks import Delivery, Task
from tests.builders import BATCH, EVALUATION, PAYLOADS, history
from tests.integration.worker import Site, site, worker
from tests.waiting import until

ROOT = Path(__file__).parents[2]
MAX_FILES = 30
MAX_HOPS = 55
BEGINNINGS = {
    AttemptPipeline._close.__code__,
    EventQueue._send_loop.__code__,
    app.raw_parser.__code__,
}
"""Functions with which a part of the path begins: the step, the sender, the delivery of a wake-up."""
AFTER_APPEND = Script._retry_quarantined.__code__
"""Entered when Redis has executed the append."""
COMMIT = PostgresStore.commit.__code__
"""Returns its result when the transaction has committed."""
VALUE_OPERATORS = {"__iadd__", "__bool__"}
PARTS_OF_A_FUNCTION = {"<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>"}
"""Comprehensions are code of the function that they are written in."""
LONG = timedelta(minutes=10)
NOT_PREPARED = Permanent("error", "the attempt has run")
ANSWER = p.Answer(output="Paris", usage=p.TokenUsage(12, 3), cost_usd=0.0017, latency_ms=31.5)
SCORE = p.Score(evaluator="exact", score=1.0, passed=True, reason="the answer is the expected one")


class CallRecorder:
    """The project's functions on the path, in the order of their first call."""

    def __init__(self) -> None:
        self.functions: dict[CodeType, None] = {}
        self.hops: set[tuple[str, CodeType]] = set()
        """Calls from one file of the project to a function of another."""
        self._is_on_path = ContextVar("is_on_path", default=False)
        """Of each asyncio task; a task that is created on the path inherits it."""
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

    def _on_event(self, frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "return" and code is COMMIT and isinstance(argument, CommitResult):
            self._is_over = self._is_over or self._is_on_path.get()
        if event != "call" or self._is_over or not _is_in_project(code):
            return
        if code in BEGINNINGS:
            self._is_on_path.set(True)
        elif code is AFTER_APPEND:
            self._is_on_path.set(False)
        if self._is_on_path.get() and code.co_name not in PARTS_OF_A_FUNCTION:
            self._add(code, _calling_file(frame))

    def _add(self, code: CodeType, caller: str | None) -> None:
        self.functions[code] = None
        if caller not in {None, _path_of(code)} and code.co_name not in VALUE_OPERATORS:
            self.hops.add((caller, code))


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


def _clear_caches() -> None:
    """Forget what functions of the project have computed before."""
    for found in gc.get_objects():
        if isinstance(found, functools._lru_cache_wrapper):
            code = getattr(found.__wrapped__, "__code__", None)  # a class has none
            if code and _is_in_project(code):
                found.cache_clear()


async def _running_attempt(here: Site, queue: EventQueue) -> OwnedAttempt:
    """Return an attempt that waits for nothing but its closing event; all before it is stored."""
    await here.append(history("queued"))
    claim = cast("p.Provisioning", PAYLOADS["provisioning"])
    claimed = await queue.claim(EVALUATION, BATCH, attempt=1, claim=claim)
    for word in ("running", "responded", "scored"):
        claimed.attempt.record(cast("Any", PAYLOADS[word]))
    await claimed.attempt.acknowledged()

    async def is_stored() -> bool:
        return await here.state(EVALUATION) == "responded" and await here.pending() == 0

    await until(is_stored)
    return claimed.attempt


def _active_task() -> ActiveTask:
    [task] = SlotPool(1).acquire([Delivery(BATCH, "1-0", Task(EVALUATION, 1))])
    return task


async def _recorded(redis_url: str, postgres_url: str) -> CallRecorder:
    """Record the path of the closing event of an evaluation."""
    recorder, settings = CallRecorder(), QueueSettings(release_interval=3600)
    async with (
        site(redis_url, postgres_url) as here,
        worker(here, gap_timeout=LONG, scan_interval=LONG, claim_idle=LONG),
        EventQueue(RedisEventLog(here.redis), source="executor", settings=settings) as queue,
    ):
        owned = await _running_attempt(here, queue)
        attempt = ClaimedAttempt(_active_task(), owned, NOT_PREPARED, NOT_PREPARED)
        closing = completed(ANSWER, [SCORE], exit_code=0)

        async def is_completed() -> bool:
            return await here.state(EVALUATION) == "completed"

        _clear_caches()
        with recorder.recording():
            AttemptPipeline._close(cast("AttemptPipeline", None), attempt, closing)
            await until(is_completed)
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
