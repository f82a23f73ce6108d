"""What `batch status --alert` says is wrong: pure words about looks, one after the other."""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from domain.batch_spec import BatchSpec, TargetSpec, pack
from executor.lanes.contract import BlockedBy, LaneView
from grafana.alerts import alerts
from projections.queries.batches import Snapshot, Waiting
from projections.queries.provider_batches import Unanswered
from scoreline.observability.thresholds import Thresholds
from scoreline.reports import alerts as decided
from scoreline.reports.alert_measure import Measure, Unit, severity_of
from scoreline.reports.alerts_past import Past
from scoreline.reports.alerts_told import POSTGRES, Watchman, age_of, alert_json, alert_line, seen_once
from scoreline.reports.crew import Crew
from scoreline.reports.lanes import LaneWait
from scoreline.reports.look import Look
from scoreline.reports.provider_batches import AtProviders
from taskqueue.executor_registry import ExecutorInstance
from tests.builders import START

SPEC = pack(BatchSpec("b", (TargetSpec("simulated", "t"),), timeout=60.0)).decode()
RUNNING = Snapshot(
    "b", "submitted", "b", "default", "", "running", "", SPEC, START, None, None, START, total=1000
)
LIMITS = Thresholds()


def at(seconds: float, *, beats: dict[str, float] | None = None, **changes: Any) -> Look:
    """Look at a batch so long after it began; executors are named by their heartbeats."""
    now = START + timedelta(seconds=seconds)
    known = {"worker-1": seconds} if beats is None else beats
    crew = Crew(tuple(ExecutorInstance(f"i-{name}", name) for name in known), "", _by_instance_id(known))
    own = {key: changes.pop(key) for key in list(changes) if key in Look.__dataclass_fields__}
    return Look(**{"snapshot": replace(RUNNING, now=now, **changes), "crew": crew, **own})


def _by_instance_id(known: dict[str, float]) -> dict[str, float]:
    return {f"i-{name}": beat for name, beat in known.items()}


def wrong(*looks: Look) -> list[str]:
    """Name what is wrong at the last of some looks."""
    past = Past.before(looks[0])
    for look in looks[1:]:
        past = past.after(look, LIMITS)
    return [trouble.name for trouble in decided.troubles(looks[-1], past, LIMITS)]


def told(looks: Sequence[Look]) -> list[str]:
    watchman = Watchman()
    return [alert_line(news) for look in looks for news in watchman.see(look)]


def test_a_batch_that_goes_on_has_no_trouble():
    """Nor one that is paused, or over, whatever it has come to."""
    assert wrong(at(0), at(60, completed=50)) == []
    assert wrong(at(0), at(9999, state="paused", failed=500, beats={})) == []
    assert wrong(at(0), at(9999, finished_at=START, failed=1000, beats={})) == []


def test_an_executor_that_falls_silent_is_missed_and_one_that_leaves_is_not():
    """A heartbeat that runs out has been old for a while; one that was taken back has not."""
    both = {"worker-1": 0.0, "worker-2": 0.0}
    first = at(0, beats=both)
    silent = [at(n, beats={"worker-1": n, "worker-2": 0.0}) for n in range(1, 20)]
    gone = [at(n, beats={"worker-1": n}) for n in range(20, 67)]
    [line] = told([first, *silent, *gone])
    said = "executor worker-2 has not been heard of for 20 s."
    assert line == f"[00:00:20] ALERT WorkerDown: {said} → scoreline worker start"
    assert told([first, *silent[:3], *gone]) == []
    back = [at(67, beats={"worker-1": 67, "worker-2": 67})]
    assert told([first, *silent, *gone, *back])[1:] == ["[00:01:07] over: WorkerDown (worker-2)"]


def test_what_may_be_over_at_once_is_told_only_when_it_lasts():
    """A fleet that starts is no fleet that is down."""
    alone = [at(n, beats={}) for n in range(30)]
    assert told([*alone[:20], at(20)]) == []
    [line] = told(alone)
    said = "0 executors alive, 1,000 evaluations wait."
    assert line == f"[00:00:20] ALERT AllWorkersDown: {said} → scoreline worker start"
    assert [news.trouble.name for news in seen_once(at(0, beats={}), LIMITS)] == ["AllWorkersDown"]


def test_executors_of_another_project_do_not_count():
    """They take nothing of this batch."""
    crew = Crew((ExecutorInstance("i", "other", project="another"),))
    assert wrong(at(0, crew=crew)) == ["AllWorkersDown"]


def test_servers_and_leaders():
    """What is not known because Redis is away is not called missing."""
    away = Crew(away="Redis at x does not answer (connection refused).")
    assert wrong(at(0), at(1, crew=away)) == ["RedisDown"]
    assert wrong(at(0), at(1, leaderless=True)) == ["CoordinatorDown"]


HELD = Waiting("running", 3, START, "b.1")


@pytest.mark.parametrize(
    ("look", "names"),
    [
        (at(901), ["BatchStuck"]),
        (at(899), []),
        (at(901, completed=1), []),
        (at(901, waiting=(replace(HELD, unmoved_since=START + timedelta(seconds=850)),)), []),
        (at(901, at_providers=AtProviders((), Unanswered(waiting=1000))), []),
        (at(901, waiting=(HELD,)), ["BatchStuck"]),
        (at(961, waiting=(HELD,)), ["BatchStuck", "StuckEvaluations"]),
    ],
    ids=["idle", "not long", "progress", "in hand, in time", "at a provider", "overdue", "stuck"],
)
def test_standstill_is_told_from_patience(look: Look, names: list[str]):
    """A long batch is not stuck; one of which nothing ends is."""
    assert wrong(at(0), look) == names


@pytest.mark.parametrize(
    ("dead", "completed", "names"),
    [
        (9, 91, []),
        (10, 90, []),
        (11, 89, ["DLQGrowing", "HighFailureRate"]),
        (11, 200, ["DLQGrowing"]),
        (3, 3, []),
        (5, 15, ["HighFailureRate"]),
    ],
)
def test_failures_are_a_share_and_a_number(dead: int, completed: int, names: list[str]):
    """Of few no share is taken."""
    assert wrong(at(0), at(60, failed=dead, completed=completed)) == names


def test_a_share_is_that_of_the_last_minutes():
    """What went wrong at first is no alert for ever; what goes wrong now is one."""
    start = at(0, failed=10, completed=10)
    then = [at(60 * n, failed=10, completed=10 + 20 * n) for n in range(1, 20)]
    assert wrong(start) == ["HighFailureRate"]
    assert wrong(start, *then) == []
    assert wrong(start, *then, at(1260, failed=150, completed=390)) == ["DLQGrowing", "HighFailureRate"]


def test_backlog_is_a_time_and_not_a_number():
    """Many that go fast are none."""
    many = (Waiting("queued", 900, START, "b.9"),)
    assert wrong(at(0), at(100, completed=20, waiting=many)) == ["QueueBacklog"]
    assert wrong(at(0), at(100, completed=100, waiting=many)) == []
    assert wrong(at(0), at(30, completed=1, waiting=many)) == []


def test_lanes():
    """One that answers nobody, and one that has had nothing for long."""

    def behind(count: int, **view: Any) -> Look:
        return at(100, completed=99, lanes=(LaneWait(LaneView("openai", **view), count),))

    since = START.timestamp()
    assert wrong(behind(0, breaker="open", failures=5)) == ["BreakerOpen"]
    assert wrong(behind(3, blocked_by=BlockedBy.RATE, since=since)) == ["RateLimitSaturation"]
    assert wrong(behind(0, blocked_by=BlockedBy.RATE, since=since)) == []
    assert wrong(behind(3, blocked_by=BlockedBy.RATE, since=since + 80)) == []
    assert wrong(behind(3, blocked_by=BlockedBy.CONCURRENCY, since=since)) == []


@pytest.mark.parametrize(
    ("spent", "names"),
    [
        ({"max_cost_usd": Decimal(1), "cost_usd": Decimal("0.91")}, ["BudgetNearlySpent"]),
        ({"max_cost_usd": Decimal(1), "cost_usd": Decimal("0.9")}, []),
        ({"max_tokens": 100, "tokens": 95, "max_cost_usd": Decimal(1)}, ["BudgetNearlySpent"]),
        ({"tokens": 95}, []),
    ],
)
def test_budget(spent: dict[str, Any], names: list[str]):
    """Of cost and tokens the larger share."""
    assert wrong(at(10, completed=5, **spent)) == names


def test_names_are_those_of_the_rules():
    """Whoever is told of one here finds it in the same runbook."""
    looks = [
        at(9999, beats={}, leaderless=True, failed=500, completed=1, waiting=(HELD,)),
        at(9999, crew=Crew(away="Redis is away")),
    ]
    seen = {name for look in looks for name in wrong(at(0), look)}
    assert {"AllWorkersDown", "CoordinatorDown", "DLQGrowing", "RedisDown"} <= seen
    assert seen <= {alert.name for alert in alerts(LIMITS)}


def test_severities_are_those_of_the_rules():
    """An alert is as grave here as it is to Prometheus."""
    rules = {alert.name: alert.severity.value for alert in alerts(LIMITS)}
    shown = {name: severity_of(name) for name in rules if name in decided_names()}
    assert shown == {name: rules[name] for name in shown}
    assert {"WorkerDown", "BudgetNearlySpent", "RateLimitSaturation"} <= shown.keys()


def decided_names() -> set[str]:
    """List the alerts that the command line knows."""
    text = Path(decided.__file__).read_text(encoding="utf-8")
    return set(re.findall(r'Trouble\(\s*"(\w+)"', text)) | {POSTGRES.name}


def test_an_alert_has_its_value_its_threshold_and_its_age():
    """Measured as the rule measures it; since when, where one look can know."""
    look = at(1000, failed=40, completed=60, beats={})
    [workers, letters, share] = seen_once(look, replace(LIMITS, dead_letters=30))
    assert workers.trouble.measure == Measure(0, 1)
    assert letters.trouble.measure == Measure(40, 30)
    assert share.trouble.measure == Measure(0.4, 0.1, Unit.SHARE)
    assert age_of(letters) is None
    [stuck] = seen_once(at(901), LIMITS)
    assert stuck.trouble.measure == Measure(901, 900, Unit.SECONDS)
    assert age_of(stuck) == timedelta(seconds=901)


def test_a_watcher_knows_how_long_an_alert_has_held():
    """From the look at which it was first seen, told or not yet."""
    watchman = Watchman()
    [news] = [news for n in range(21) for news in watchman.see(at(n, beats={}))]
    assert age_of(news) == timedelta(seconds=20)
    line = json.loads(alert_json(news, "https://runbook.example/operations.md"))
    assert (line["severity"], line["value"], line["threshold"], line["age_seconds"]) == (
        "critical",
        0,
        1,
        20,
    )
    assert line["runbook"] == "https://runbook.example/operations.md#allworkersdown"
