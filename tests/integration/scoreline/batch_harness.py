"""Batches in a database as a coordinator and a storage worker leave them, and the commands that look.

async with harness(postgres_url, redis_url) as here:
    await here.submit("nightly", ["passed", "failed", "dead"])
    assert (await here.run("status", "nightly")).exit_code == 0
"""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from typer.testing import CliRunner, Result

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec, pack
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.events import Event
from scoreline.cli.batch import app
from tests.builders import history
from tests.integration.place import Place, place

MONTH = "date_trunc('month', now() AT TIME ZONE 'UTC')::date"
PLACED = "UPDATE evaluations SET case_id = %s, variant = %s, repetition = 1 WHERE evaluation_id = %s"
WILD = '=1+1 <b>&"\x1b[31m\x07\u202e\r\n]]> \U0001f600 \ufffe'
"""An output that a spreadsheet would run, a terminal obey, and XML choke on."""


def spec(*targets: str, prompts: Sequence[str] = ("{input}",)) -> BatchSpec:
    """Make a spec of some targets, with a secret where secrets may be."""
    named = tuple(
        TargetSpec("simulated", label, {"api_key": "hunter2"}) for label in targets or ("simulated",)
    )
    return BatchSpec("a batch", named, tuple(prompts), (EvaluatorSpec("exact", "exact"),))


def life(word: str, key: str, *, batch_id: str, case: p.Case, output: str) -> list[list[Event]]:
    """Make the attempts of an evaluation that came to an end, or did not, in this way."""
    queued = p.Queued(case=case)
    answered = p.Responded(output=output, cost_usd=0.25)
    judged = p.Score(
        evaluator="exact", score=float(word == "passed"), passed=word == "passed", reason=f"{output}!"
    )

    def lived(words: str, **own: p.AnyPayload) -> list[Event]:
        payloads: dict[str, Any] = {
            "queued": queued,
            "responded": answered,
            **own,
        }
        return history(words, evaluation_id=key, batch_id=batch_id, **payloads)

    match word:
        case "passed" | "failed":
            done = p.Completed(
                verdict=word, score=judged.score, scores=(judged,), usage=p.TokenUsage(input_tokens=7),
                cost_usd=0.25, latency_ms=1500.0, exit_code=0,
            )  # fmt: skip
            return [lived("queued provisioning running responded completed", completed=done)]
        case "known":
            known = p.Queued(case=case, answer=p.Answer(output=output))
            return [lived("queued provisioning running completed", queued=known)]
        case "dead":
            return [lived("queued provisioning running failed")]
        case "timed_out":
            return [lived("queued provisioning running timed_out")]
        case "cancelled":
            ended = history("cancelled", evaluation_id=key, batch_id=batch_id, attempt=2)
            return [lived("queued"), ended]
        case "retried":
            again = history(
                "queued:retry provisioning running responded completed",
                evaluation_id=key, batch_id=batch_id, attempt=2, responded=answered,
            )  # fmt: skip
            return [lived("queued provisioning running responded retrying"), again]
        case _:
            return [lived(word.replace("+", " "))]


@dataclass(frozen=True, slots=True)
class Harness:
    """A database, and the commands."""

    place: Place
    redis_url: str

    async def submit(
        self,
        batch_id: str,
        words: Sequence[str],
        *,
        about: BatchSpec | None = None,
        output: str = "4",
        cases: Sequence[p.Case] = (),
        variants: int = 1,
    ) -> None:
        """Let a batch live: each word is a case's end, each case is there once a variant."""
        insert = (
            "INSERT INTO batches (batch_id, kind, month, name, spec, total, published_to)"
            f" VALUES (%s, 'submitted', {MONTH}, 'a batch', %s, %s, '~')"
        )
        packed = pack(about or spec()).decode()
        await self.place.conn.execute(insert.encode(), [batch_id, packed, len(words) * variants])
        number = 0
        for at, word in enumerate(words):
            case = cases[at] if cases else p.Case(id=f"case-{at + 1}", input={"q": at}, expected="4")
            for variant in range(variants):
                number += 1
                key = evaluation_id(batch_id, number)
                for attempt in life(word, key, batch_id=batch_id, case=case, output=output):
                    await self.place.store(attempt)
                await self.place.alter(PLACED, case.id, variant, key)

    async def change(self, batch_id: str, assignment: str) -> None:
        """Do to a batch's row what its coordinator would."""
        await self.place.alter(f"UPDATE batches SET {assignment} WHERE batch_id = %s", batch_id)

    async def run(self, *arguments: str, **environ: str) -> Result:
        """Run a command to its end."""
        urls = {"EVAL_REDIS_URL": self.redis_url, "EVAL_POSTGRES_URL": self.place.url, "COLUMNS": "200"}
        return await asyncio.to_thread(
            lambda: CliRunner().invoke(app, list(arguments), env={**urls, **environ})
        )

    async def documents(self, *arguments: str) -> list[dict[str, Any]]:
        """Run a command for machines, and read what it prints."""
        ran = await self.run(*arguments, "--json")
        assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
        return [json.loads(line) for line in ran.stdout.splitlines()]


@asynccontextmanager
async def harness(postgres_url: str, redis_url: str) -> AsyncIterator[Harness]:
    """Lend a harness."""
    async with place(postgres_url) as here:
        yield Harness(here, redis_url)
