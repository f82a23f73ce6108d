"""Keys of a type that Scoreline does not write, where it depends on them."""

import json
from pathlib import Path
from zlib import crc32

import pytest
from redis import Redis

from tests.acceptance.batch_commands import Folder
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do

TOTAL = 24
ASKED = ("--dataset", "cases.jsonl", "--target", "python:app:gated", "--evaluator", "exact")
RUN = ("--workers", "1", "--concurrency", "4", "--json")


def pair_of(evaluation_id: str) -> list[str]:
    """Return the names of an evaluation's stream and fence."""
    shard = crc32(evaluation_id.encode()) % 4
    return [f"eval:{{{shard:02}}}:{kind}:{evaluation_id}" for kind in ("events", "fence")]


async def test_keys_of_the_wrong_type_are_quarantined_and_the_batch_ends(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Fence, stream, wake-ups, epoch, tasks: each is renamed and logged once, and every case ends."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(TOTAL)
    with Redis.from_url(redis_url) as redis:
        async with folder.started("batch", "run", *ASKED, *RUN) as run:
            await until(lambda: len(folder.calls) >= 4, 90)
            batch_id = folder.batch_id()
            claimed = [key.decode().partition(":fence:")[2] for key in redis.scan_iter("eval:{*}:fence:*")]
            active = [key for key in claimed if redis.hexists(pair_of(key)[1], "d:1")]
            spoilt = [
                pair_of(active[0])[1],
                pair_of(active[1])[0],
                "eval:{00}:wake",
                "eval:{01}:epoch",
                f"eval:tasks:{{{batch_id}}}",
            ]
            for key in spoilt:
                redis.delete(key)
                redis.lpush(key, "of another type")
            (folder.root / "open").touch()
            ran = await run.end()
        kept = {key.decode(): redis.lrange(key, 0, -1) for key in redis.scan_iter("eval:quarantine:*")}
    assert (ran.code, ran.document["passed"]) == (0, TOTAL), ran.stderr
    assert sorted(name.split(":", 3)[3] for name in kept) == sorted(spoilt)
    assert all(value == [b"of another type"] for value in kept.values())
    logged = [line for path in folder.data.rglob("*.log") for line in path.read_text().splitlines()]
    lines = [json.loads(line) for line in logged if "quarantined a key of the wrong type" in line]
    assert sorted(line["key"] for line in lines) == sorted(spoilt)
    assert {line["found"] for line in lines} == {"list"}
    verified = await folder.run("replay", "--batch", batch_id, "--verify")
    assert verified.code == 0, verified.stdout + verified.stderr
