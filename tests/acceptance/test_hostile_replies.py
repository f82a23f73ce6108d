"""Replies made to fill memory, to take for ever, or to be sent on to another host."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.batch_commands import Folder, Started
from tests.extras import require
from tests.hostile_provider import HostileProvider, hostile_provider

require("openai")
pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do

MOST_MEMORY = 300 * 1024
"""Kilobytes that an executor may take, whatever it is sent."""
SECRET = "canary-of-the-header-5512"
EXPECTED = {
    "good": "completed",
    "redirect-302": "redirect",
    "redirect-307": "redirect",
    "gzip": "too_large",
    "deflate": "too_large",
    "nested": "too_large",
    "brotli": "unsupported_encoding",
    "zstd": "unsupported_encoding",
    "error": "http_500",
    "charset": "http_500",
    "deep": "invalid_response",
    "wide": "invalid_response",
    "headers": "connection",
    "drip": "timed_out",
    "slowhead": "timed_out",
    "continue": "timed_out",
}
STREAMED = {
    "redirect-303": "redirect",
    "events": "too_large",
    "texts": "too_large",
    "gzip": "too_large",
    "error": "http_500",
    "deepevent": "invalid_response",
    "stream": "timed_out",
    "drip": "timed_out",
}
HTTP = {
    "redirect-308": "redirect",
    "gzip": "too_large",
    "nested": "too_large",
    "error": "http_500",
    "charset": "http_500",
    "deep": "garbage",
    "wide": "too_large",
    "drip": "timed_out",
    "continue": "timed_out",
}


@pytest.fixture
async def hostile() -> AsyncIterator[HostileProvider]:
    async with hostile_provider() as lent:
        yield lent


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    made = Folder(tmp_path, redis_url, postgres_url)
    made.cases(3)
    made.environ |= {"OPENAI_API_KEY": "key-0123456789", "CANARY": SECRET}
    made.environ["EVAL_RATE_LIMIT_BREAKER_SECONDS"] = "0.1"  # http targets share the lane of their host
    return made


def spec(hostile: HostileProvider) -> dict[str, Any]:
    """A batch with a target for each attack; no lane is shared, so that no breaker opens."""
    common = {"type": "openai", "model": "m", "headers": {"X-Canary": "$CANARY"}}
    models = [
        {**common, "label": f"{stream}{attack}", "account": f"{stream}{attack}", "stream": bool(stream),
         "base_url": f"{hostile.url(attack)}/v1"}
        for stream, attacks in (("", EXPECTED), ("s.", STREAMED))
        for attack in attacks
    ]  # fmt: skip
    servers = [
        {"type": "http", "label": f"h.{attack}", "url": hostile.url(attack), "output": "output"}
        for attack in HTTP
    ]
    return {
        "dataset": "cases.jsonl",
        "targets": [*models, *servers],
        "evaluator": "exact",
        "retries": 0,
        "timeout": 6,
        "fail_fast_after": 1_000,
    }


async def peak_of_executors(run: Started) -> int:
    """Return the most memory that an executor of the run ever took, in kilobytes, once the run is over."""
    peak = 0
    while run.process.returncode is None:
        peak = max([peak, *map(peak_of_executor, run.family())])
        await asyncio.sleep(0.05)
    return peak


def peak_of_executor(pid: int) -> int:
    """Return VmHWM of a process, or 0 if it is no executor, or gone."""
    with suppress(OSError):
        process = Path(f"/proc/{pid}")
        if b"worker" in (process / "cmdline").read_bytes().split(b"\0"):
            found = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
            return int(found[1]) if found else 0
    return 0


async def test_hostile_replies_cost_their_own_case_and_little_memory(
    folder: Folder, hostile: HostileProvider
) -> None:
    """Bombs, depth, drips and redirects end as their own failure; nothing reaches another host; 300 MB."""
    folder.write("attacks.json", json.dumps(spec(hostile)))
    flags = ("--workers", "1", "--concurrency", "32", "--json", "--no-preflight")
    async with folder.started("batch", "run", "-c", "attacks.json", *flags) as run:
        measured = asyncio.create_task(peak_of_executors(run))
        ran = await run.end()
        peak = await measured
    found = folder.ask(
        "SELECT e.event->'data'->>'target', f.type, f.event->'data'->'error'->>'kind',"
        " f.event->'data'->'error'->>'message'"
        " FROM events e JOIN events f USING (evaluation_id, attempt)"
        " WHERE e.type = 'running' AND f.type IN ('completed', 'failed', 'timed_out')"
    )
    kinds = {(target, kind if state == "failed" else state) for target, state, kind, _ in found}
    expected = {*EXPECTED.items(), *((f"s.{a}", k) for a, k in STREAMED.items())}
    expected |= {(f"h.{attack}", kind) for attack, kind in HTTP.items()}
    assert kinds == expected, (ran.code, ran.stderr)
    assert len(found) == 3 * len(expected)
    assert hostile.stolen == []
    document = [message for _, _, kind, message in found if kind == "redirect"]
    assert all(f"127.0.0.1:{hostile.other}" in message and "steal" not in message for message in document)
    assert peak <= MOST_MEMORY, f"{peak / 1024:.0f} MB"
