"""Batches of models as people run them: why they wait, what went wrong for good, and what it costs."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from eventlog.redis_streams import connect
from scoreline.provider_sim.simulator import Simulator
from scoreline.reports.lanes import read_lanes
from tests.acceptance.batch_commands import TIMEOUT, Folder
from tests.extras import require
from tests.provider import provider
from tests.waiting import until

require("anthropic")
require("openai")
pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do

RUN = ("batch", "run", "--workers", "1", "--json")
KEY = "sk-ant-api03-a-key-that-must-not-leak-0123456789"
WRONG = "sk-ant-api03-another-that-must-not-leak-9876543210"


@pytest.fixture
async def sim() -> AsyncIterator[Simulator]:
    """A provider that has one key and one model, and lists its requests."""
    async with provider(mode="echo", keys=[KEY], models=["claude-haiku-4-5"], context_tokens=500) as lent:
        yield lent


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str, sim: Simulator) -> Folder:
    made = Folder(tmp_path, redis_url, postgres_url)
    keys = {"ANTHROPIC_API_KEY": KEY, "WRONG_KEY": WRONG}
    made.environ |= {"ANTHROPIC_BASE_URL": sim.base_url, **keys}
    return made


def kept_secret(folder: Folder, *screens: str) -> bool:
    """Whether no key is on these screens, in what the fleet logged, or in the database."""
    logged = [path.read_text(errors="replace") for path in folder.data.rglob("*.log")]
    events = [str(row) for row in folder.ask("SELECT to_jsonb(events) FROM events")]
    batches = [str(row) for row in folder.ask("SELECT to_jsonb(batches) FROM batches")]
    assert events
    return not any(key in text for key in (KEY, WRONG) for text in (*screens, *logged, *events, *batches))


# -- what a batch waits for


WAITING = """
dataset: cases.jsonl
targets:
  - {{type: anthropic, model: claude-haiku-4-5, label: away, account: away, base_url: "{away}"}}
  - {{type: anthropic, model: claude-haiku-4-5, label: busy, account: busy, base_url: "{busy}"}}
  - {{type: anthropic, model: claude-haiku-4-5, label: wordy, account: wordy, base_url: "{wordy}"}}
  - anthropic/claude-haiku-4-5
evaluator: exact
retries: 100
"""
AGAIN = "one call will try again"
AFTER = r"\(Retry-After\)"
AT = r"in [\d.a-z ]+, at [\d:.]+ UTC"
FOR = r"\(for [\d.a-z ]+\); \d+ tasks? behind it\."


async def test_status_shows_why_since_when_until_when_and_how_many_wait(
    folder: Folder, redis_url: str
) -> None:
    """A dead provider, one with Retry-After, a spent token minute: each named; the fourth is done."""
    folder.cases(40)
    folder.environ["EVAL_RATE_LIMIT_BREAKER_SECONDS"] = "600"
    async with (
        provider(reset_before=1.0) as away,
        provider(rpm=1, limit_headers=False) as busy,
        provider(tpm=60) as wordy,
    ):
        urls = {"away": away.base_url, "busy": busy.base_url, "wordy": wordy.base_url}
        folder.write("wait.yaml", WAITING.format(**urls))
        async with folder.started(*RUN, "-c", "wait.yaml") as running:
            await until(lambda: folder.ended() >= 40, TIMEOUT)
            batch_id = folder.batch_id()
            await until(lambda: waits(redis_url, batch_id), TIMEOUT)
            status = await folder.run("batch", "status", batch_id)
            running.interrupt()
            assert (await running.end()).code == 130
    screen = status.stdout + status.stderr
    for sentence in (
        rf"anthropic:away:\S+ does not answer: \d+ calls in a row failed, {AGAIN} {AT} {FOR}",
        rf"anthropic:busy:\S+ is throttled by the provider {AFTER}, the next call may start {AT} {FOR}",
        rf"anthropic:wordy:\S+ has used up its 60 tokens a minute, the next call may start {AT} {FOR}",
        r"anthropic/claude-haiku-4-5 +\{input\} +40/40 +100.0%",
    ):
        assert re.search(sentence, screen), (sentence, screen)
    assert (status.code, kept_secret(folder, screen)) == (0, True)


async def waits(redis_url: str, batch_id: str) -> bool:
    """Whether three lanes wait, each for something else."""
    async with aclosing(connect(redis_url)) as redis:
        found = {wait.view.blocked_by for wait in await read_lanes(redis, batch_id) if wait.behind}
    return found >= {"breaker", "retry_after", "tokens"}


PAID = """
dataset: cases.jsonl
target: {type: anthropic, model: claude-haiku-4-5, prices: {input: 10000, output: 10000}}
evaluator: exact
max_cost: 1.50
"""


async def test_a_spent_budget_pauses_the_batch_and_status_shows_how_it_goes_on(
    folder: Folder, sim: Simulator
) -> None:
    """It ends with 4; what is left stays queued, and the flag that lets it go on is on the screen."""
    folder.cases(400)
    folder.write("paid.yaml", PAID)
    sim.change(latency=0.2)
    ran = await folder.run("batch", "run", "--workers", "1", "--concurrency", "2", "-c", "paid.yaml")
    status = await folder.run("batch", "status", folder.batch_id())
    for code, screen in ((ran.code, ran.stderr), (status.code, status.stdout + status.stderr)):
        assert code == 4, screen
        assert re.search(r"paused \d+ of 400", screen)
        assert re.search(r"waiting: [\d,]+ queued", screen)
        again = rf"To continue: scoreline batch resume {folder.batch_id()} --max-cost [\d.]+"
        assert re.search(rf"Paused: budget \$1\.50: \$[\d.]+ spent(, .*)?\. {again}", screen)
    assert sim.stats.of("/v1/messages", 200) < 400


# -- what will not get better


HOPELESS = """
dataset: cases.jsonl
targets:
  - {{type: anthropic, model: claude-haiku-4-5, label: wrong key, key_variable: WRONG_KEY}}
  - {{type: anthropic, model: claude-nowhere-1, label: no such model}}
  - {{type: anthropic, model: claude-haiku-4-5, label: too long, system: "{long}"}}
  - {{type: anthropic, model: claude-haiku-4-5, label: no key, key_variable: MISSING_KEY}}
  - anthropic/claude-haiku-4-5
evaluator: exact
"""
ADVICE = {
    "authentication": "the key in WRONG_KEY was refused by Anthropic: is it whole, and still valid?",
    "model_not_found": "there is no model 'claude-nowhere-1' at",
    "prompt_too_long": "the prompt is too long for claude-haiku-4-5: shorten it, or take a model with a",
    "invalid": "Anthropic needs a key: put it into the executors' environment, as MISSING_KEY",
}


async def test_what_will_not_get_better_is_settled_at_once_with_what_to_do(
    folder: Folder, sim: Simulator
) -> None:
    """401, 404, 400 and a missing key: one call each at most, no retry, code 3; the neighbour passes."""
    folder.cases(2)
    folder.write("hopeless.yaml", HOPELESS.format(long="word " * 3_000))
    ran = await folder.run(*RUN, "-c", "hopeless.yaml", "--no-preflight")
    document = ran.document
    assert (ran.code, document["dead_letters"], document["passed"], document["retried"]) == (3, 8, 2, 0), (
        ran.stderr
    )
    letters = await folder.run("batch", "dlq", document["batch_id"], "--json")
    found = [json.loads(line) for line in letters.stdout.splitlines()]
    for kind, advice in ADVICE.items():
        mine = [each for each in found if each["kind"] == kind]
        assert [(each["attempt"], advice in each["message"]) for each in mine] == [(1, True)] * 2, found
    assert [sim.stats.of("/v1/messages", status) for status in (401, 404, 400, 200)] == [2, 2, 2, 2]
    export = await folder.run("batch", "export", document["batch_id"], "-o", "-", "--format", "jsonl")
    assert len(export.stdout.splitlines()) == 10
    screens = (ran.stdout, ran.stderr, letters.stdout, export.stdout, export.stderr)
    assert kept_secret(folder, *screens)


async def test_a_wrong_key_stops_the_batch_before_everything_has_failed(
    folder: Folder, sim: Simulator
) -> None:
    """After five failures in a row it is paused, with the provider's refusal as the reason: code 4."""
    folder.cases(400)
    folder.environ["ANTHROPIC_API_KEY"] = WRONG
    sim.change(latency=0.2)
    asked = ("--dataset", "cases.jsonl", "--target", "anthropic/claude-haiku-4-5", "--evaluator", "exact")
    slow = ("--fail-fast-after", "5", "--max-concurrency", "2", "--rpm-limit", "600")
    ran = await folder.run("batch", "run", "--workers", "1", *asked, *slow)
    assert ran.code == 4, ran.stderr
    assert "Paused: 5 evaluations in a row failed: authentication: the key in" in ran.stderr
    assert f"To continue: scoreline batch resume {folder.batch_id()}" in ran.stderr
    assert sim.stats.of("/v1/messages", 401) < 400
    assert kept_secret(folder, ran.stdout, ran.stderr)


# -- judges


JUDGED = """
dataset: cases.jsonl
target: anthropic/claude-haiku-4-5
evaluators:
  - exact
  - type: llm_judge
    model: anthropic/claude-haiku-4-5
    rubric: "The question was {input}, a right answer is {expected}. Is {output} right?"
    scale: [1, 5]
    threshold: 3
    name: polite
"""


async def test_a_judge_that_is_a_model_judges_a_batch(folder: Folder, sim: Simulator) -> None:
    """From a spec file: every answer has a score with a reason, and the judge's cost is counted."""
    folder.cases(5)
    folder.write("judged.yaml", JUDGED)
    sim.change(pass_rate=1.0)
    ran = await folder.run(*RUN, "-c", "judged.yaml")
    assert (ran.code, ran.document["passed"]) == (0, 5), ran.stderr
    assert sim.stats.of("/v1/messages", 200) == 10
    export = await folder.run("batch", "export", ran.document["batch_id"], "-o", "-", "--format", "jsonl")
    for each in map(json.loads, export.stdout.splitlines()):
        [exact, polite] = each["scores"]
        assert (exact["evaluator"], polite["evaluator"], polite["passed"]) == ("exact", "polite", True)
        assert re.match(r"[\d.]+ of 5: ", polite["reason"])
    paid = "SELECT sum((each->>'cost_usd')::float) FROM scorecards, json_array_elements(scores) AS each"
    assert 0 < folder.ask(paid)[0][0] < ran.document["cost_usd"]
    assert kept_secret(folder, ran.stdout, ran.stderr, export.stdout)
