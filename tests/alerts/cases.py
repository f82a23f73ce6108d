"""For each alert: series with which it fires, its description, and similar series with which it does not.

Series are in the notation of promtool: `0+4x20` is 0, 4, 8 … with one sample every 15 s, `_` is none.
"""

from dataclasses import dataclass, field

Series = dict[str, str]

WORKER = 'eval_worker_heartbeat_total{job="executor",instance="%s",worker_id="%s"}'
UP = 'up{job="executor",instance="%s"}'
TOOK = 'scrape_duration_seconds{job="executor",instance="%s"}'
RUNNING = {'eval_active_batches{state="running"}': "1x400"}


@dataclass(frozen=True, slots=True)
class Case:
    """The series of one alert."""

    fires: Series
    description: str
    silent: dict[str, Series]
    """Similar series with which it must not fire, by name."""
    labels: dict[str, str] = field(default_factory=dict)
    at: str = "30m"


def heartbeats(worker: str, values: str) -> Series:
    return {WORKER % (worker, worker): values}


def scraped(worker: str, up: str, took: str) -> Series:
    return {UP % worker: up, TOOK % worker: took}


def processed(success: int, failure: int) -> Series:
    counts = {"success": success, "failure": failure, "retry": 500, "lost": 500}
    name = 'eval_worker_tasks_processed_total{worker_id="%s",status="%s"}'
    return {name % (w, status): f"0+{n}x400" for w in "ab" for status, n in counts.items()}


def queue(batch: str, *, pending: int = 0, owned: int = 0) -> Series:
    counts = {"pending": pending, "owned": owned}
    return {f'eval_queue_{name}_tasks{{batch_id="{batch}"}}': f"{n}x400" for name, n in counts.items()}


def waits(milliseconds: int) -> Series:
    """Waits for permits of a lane, all of this length."""
    name = 'eval_rate_limit_wait_ms_bucket{lane="openai",le="%s"}'
    buckets = [100, 1000, 5000, 10000, 60000]
    counts = {name % le: "0+10x400" if le >= milliseconds else "0x400" for le in buckets}
    return {
        **counts,
        name % "+Inf": "0+10x400",
        'eval_rate_limit_acquired_total{lane="openai"}': "0+10x400",
    }


BEATING = heartbeats("w1", "0+3x400") | heartbeats("w2", "0+3x400")
SILENT = heartbeats("w1", "0+3x400") | heartbeats("w2", "0+3x80 _x320")
"""The second stops after 20 minutes."""
LEFT_BEHIND = {"eval_workers_present": "2x82 1x318"}
STUCK = {'eval_batch_idle_seconds{batch_id="b"}': "0+15x400"}
FAILING = {'eval_llm_errors_total{provider="openai",kind="server"}': "0+3x400"}
CALLS = 'eval_rate_limit_acquired_total{lane="openai"}'
OVERDUE = "eval_worker_oldest_task_overdue_seconds{%s}"
FINISHED = 'eval_batch_finished_timestamp_seconds{batch_id="nightly-7",status="partial"}'
DEAD = 'eval_queue_dlq_size{batch_id="b"}'
BEGAN = 'eval_batch_started_timestamp_seconds{batch_id="b"}'

CASES: dict[str, Case] = {
    "WorkerDown": Case(
        fires=SILENT | LEFT_BEHIND,
        labels={"job": "executor", "instance": "w2", "worker_id": "w2"},
        description="Executor w2 stopped sending heartbeats without deregistering. Other executors"
        " reclaim its tasks."
        " It sent 240 heartbeats from w2, and no other executor has replaced it.",
        silent={
            "all beat": BEATING | {"eval_workers_present": "2x400"},
            "it deregistered": SILENT
            | LEFT_BEHIND
            | {
                'eval_worker_stopped_total{instance="w2",worker_id="w2",reason="requested"}': (
                    "_x79 1 1 _x320"
                ),
            },
            "it was scraped, and its target was removed": SILENT
            | LEFT_BEHIND
            | scraped("w2", "1x80 _x320", "0.1x80 _x320"),
            "it is frozen, which is WorkerStalled": SILENT
            | LEFT_BEHIND
            | scraped("w2", "1x80 0x320", "0.1x80 10x320"),
            "it was restarted under its name": SILENT
            | LEFT_BEHIND
            | {WORKER % ("w2-again", "w2"): "_x84 0+3x320"},
            "another has replaced it": SILENT | {"eval_workers_present": "2x82 1x2 2x318"},
        },
    ),
    "WorkerStalled": Case(
        fires={OVERDUE % 'job="executor",instance="i",worker_id="w"': "0x80 0+15x320"},
        labels={"job": "executor", "instance": "i", "worker_id": "w"},
        description="Executor w (i) does not answer Prometheus, sends no heartbeats, or holds a task that"
        " is 9m 45s"
        " past its time-out.",
        silent={
            "a task of an hour within its time-out": {
                'eval_worker_oldest_task_seconds{instance="i",worker_id="w"}': "0+15x400",
                'eval_worker_oldest_task_overdue_seconds{instance="i",worker_id="w"}': "0x400",
            },
            "idle": scraped("w1", "1x400", "0.1x400") | heartbeats("w1", "0+3x400"),
            "dead, which is WorkerDown": scraped("w1", "1x80 0x320", "0.1x80 0.001x320"),
        },
    ),
    "AllWorkersDown": Case(
        fires={"eval_workers_present": "2x80 0x320"} | RUNNING,
        description="0 executors are alive while batches are running; minimum: 1.",
        silent={
            "nothing to do": {
                "eval_workers_present": "0x400",
                'eval_active_batches{state="running"}': "0x400",
                'eval_active_batches{state="paused"}': "1x400",
            },
            "one is left": {"eval_workers_present": "2x80 1x320"} | RUNNING,
            "no coordinator counts them, and they send heartbeats": BEATING
            | {'eval_active_batches{state="running"}': "1x80"},
        },
    ),
    "CoordinatorDown": Case(
        fires={'eval_coordinator_leading{instance="c1"}': "1x80 _x320"} | RUNNING,
        description="No coordinator holds the leader lock. Published tasks will finish; no"
        " evaluation is published or retried, and no batch finishes.",
        silent={
            "another took over": {
                'eval_coordinator_leading{instance="c1"}': "1x80 _x320",
                'eval_coordinator_leading{instance="c2"}': "0x82 1x318",
            }
            | RUNNING,
            "none can, because Redis is unreachable": {
                'eval_coordinator_leading{instance="c1"}': "0x400",
                'eval_dependency_up{job="coordinator",instance="c1",dependency="redis"}': "0x400",
                'eval_dependency_up{job="coordinator",instance="c1",dependency="postgres"}': "1x400",
            }
            | RUNNING,
            "there is no fleet": {'up{job="otel-collector"}': "1x400"},
        },
    ),
    "StorageDown": Case(
        fires={'eval_storage_lag_seconds{instance="s1"}': "0x80 _x320"} | RUNNING,
        description="No storage worker reports metrics. Events accumulate in Redis, and no result reaches"
        " PostgreSQL.",
        silent={
            "one is left": {
                'eval_storage_lag_seconds{instance="s1"}': "0x80 _x320",
                'eval_storage_lag_seconds{instance="s2"}': "0x400",
            }
            | RUNNING,
            "there is no fleet": {'up{job="otel-collector"}': "1x400"},
        },
    ),
    "RedisDown": Case(
        fires={
            'eval_dependency_up{job="executor",instance="a",dependency="redis"}': "1x80 0x320",
            'eval_dependency_up{job="executor",instance="b",dependency="redis"}': "1x80 0x320",
            'eval_dependency_up{job="coordinator",instance="c",dependency="redis"}': "1x400",
        },
        labels={"job": "executor", "dependency": "redis"},
        description="Redis is unreachable: tasks are not dispatched and events are not recorded. Reported"
        " by every"
        " executor process.",
        silent={
            "one of two": {
                'eval_dependency_up{job="executor",instance="a",dependency="redis"}': "1x80 0x320",
                'eval_dependency_up{job="executor",instance="b",dependency="redis"}': "1x400",
            },
            "the other server": {'eval_dependency_up{job="executor",dependency="postgres"}': "0x400"},
        },
    ),
    "PostgresDown": Case(
        fires={'eval_dependency_up{job="storage-worker",dependency="postgres"}': "1x80 0x320"},
        labels={"job": "storage-worker", "dependency": "postgres"},
        description="PostgreSQL is unreachable: batches are not accepted and results are not stored."
        " Reported by"
        " every storage-worker process.",
        silent={
            "back within the time": {
                'eval_dependency_up{job="storage-worker",dependency="postgres"}': "1x119 0 1x320"
            },
            "the other server": {'eval_dependency_up{job="storage-worker",dependency="redis"}': "0x400"},
        },
    ),
    "TelemetryDown": Case(
        fires={'up{job="otel-collector",instance="otel-collector:8889"}': "1x80 0x320"},
        labels={"job": "otel-collector", "instance": "otel-collector:8889"},
        description="otel-collector:8889 does not answer Prometheus. Other alerts are unreliable until it"
        " does.",
        silent={
            "it answers": {'up{job="otel-collector",instance="otel-collector:8889"}': "1x400"},
            "an executor": {'up{job="executor",instance="e"}': "0x400"},
        },
    ),
    "QueueBacklog": Case(
        fires=queue("b", pending=4000) | {'eval_queue_ack_total{worker_id="w"}': "0+15x400"},
        description="At the current rate the queue takes 1h 6m 40s to drain.",
        silent={
            "much, and fast": queue("b", pending=20_000)
            | {'eval_queue_ack_total{worker_id="w"}': "0+300x400"},
            "just within the hour": queue("b", pending=3500)
            | {'eval_queue_ack_total{worker_id="w"}': "0+15x400"},
            "no progress at all, which is BatchStuck": queue("b", pending=2000)
            | {'eval_queue_ack_total{worker_id="w"}': "7x400"},
        },
    ),
    "DLQGrowing": Case(
        fires={DEAD: "_x4 11x400", BEGAN: "60x400"},
        labels={"batch_id": "b"},
        description="11 evaluations of batch b became dead letters. Counted over the last 1h.",
        silent={
            "ten": {DEAD: "0x100 10x400", BEGAN: "60x400"},
            "many, and long ago": {DEAD: "5000x400", BEGAN: "-9999x400"},
            "fewer, because they were retried": {DEAD: "500x100 20x400", BEGAN: "-9999x400"},
        },
    ),
    "StalledTasks": Case(
        fires={'eval_queue_claim_total{worker_id="a"}': "0+3x400"},
        description="200m tasks per second are reclaimed from executors that stopped extending them.",
        silent={
            "one crash with sixteen claimed tasks": {
                'eval_queue_claim_total{worker_id="a"}': "0x100 16x300"
            },
            "now and then": {'eval_queue_claim_total{worker_id="a"}': "0+1x400"},
        },
    ),
    "BatchStuck": Case(
        fires=STUCK | queue("b", pending=5),
        labels={"batch_id": "b"},
        description="No evaluation of batch b has ended for 30m 0s.",
        silent={
            "long, with progress": {
                'eval_batch_started_timestamp_seconds{batch_id="b"}': "-99999x400",
                'eval_batch_idle_seconds{batch_id="b"}': "300x400",
            }
            | queue("b", pending=5),
            "long tasks, within their time-out": STUCK
            | queue("b", pending=5, owned=2)
            | {'eval_worker_oldest_task_overdue_seconds{worker_id="w"}': "0x400"},
            "it waits for a provider batch": STUCK | queue("b") | {"eval_batch_api_open": "1x400"},
            "paused": {'eval_batch_idle_seconds{batch_id="b"}': "0x400"} | queue("b", pending=5),
        },
    ),
    "StuckEvaluations": Case(
        fires={"eval_stuck_evaluations": "0x80 3x320"},
        description="3 evaluations have had no event for 15m beyond their time-out.",
        silent={
            "none": {"eval_stuck_evaluations": "0x400"},
            "not for long": {"eval_stuck_evaluations": "0x110 3x5 0x300"},
        },
    ),
    "HighFailureRate": Case(
        fires=processed(89, 11),
        description="11% of the evaluations that ended recently became dead letters."
        " Counted over the last 10m.",
        silent={
            "nine of a hundred": processed(91, 9),
            "too few for a rate": {
                'eval_worker_tasks_processed_total{worker_id="a",status="success"}': "0x100 2x300",
                'eval_worker_tasks_processed_total{worker_id="a",status="failure"}': "0x100 3x300",
            },
            "retries that succeed": processed(100, 0),
        },
    ),
    "BudgetNearlySpent": Case(
        fires={'eval_batch_budget_spent_ratio{batch_id="b"}': "0.91x400"},
        labels={"batch_id": "b"},
        description="Batch b has spent 91% of its budget; it pauses before it exceeds it.",
        silent={"not yet": {'eval_batch_budget_spent_ratio{batch_id="b"}': "0.89x400"}},
    ),
    "BatchCompleted": Case(
        fires={FINISHED: "_x110 1650x300"},
        labels={"batch_id": "nightly-7", "status": "partial"},
        description="Batch nightly-7 finished 2m 30s ago with outcome partial.",
        silent={"long ago": {FINISHED: "1200x400"}},
    ),
    "RateLimitSaturation": Case(
        fires=waits(10_000),
        labels={"lane": "openai"},
        description="Calls wait 9.75s (95th percentile) for a permit of lane openai.",
        silent={
            "short waits": waits(1000),
            "sometimes refused, and granted": waits(1000)
            | {'eval_rate_limit_refused_total{lane="openai",why="rate"}': "0+99x400"},
        },
    ),
    "LLMAPIErrors": Case(
        fires=FAILING | {CALLS: "0+10x400"},
        labels={"provider": "openai", "kind": "server"},
        description="200m calls per second to openai fail with server.",
        silent={
            "three of a hundred": FAILING | {CALLS: "0+100x400"},
            "one a minute": {'eval_llm_errors_total{provider="openai",kind="server"}': "0+0.25x400"},
        },
    ),
    "BreakerOpen": Case(
        fires={
            'eval_lane_breaker_state{lane="openai",instance="a"}': "0x80 2x40 1x1 2x300",
            'eval_lane_breaker_state{lane="openai",instance="b"}': "0x400",
        },
        labels={"lane": "openai"},
        description="The circuit breaker of lane openai is open: calls to the provider failed repeatedly.",
        silent={
            "closed": {'eval_lane_breaker_state{lane="openai"}': "0x400"},
            "for a moment": {'eval_lane_breaker_state{lane="openai"}': "0x118 2x1 0x300"},
        },
    ),
    "StorageLag": Case(
        fires={'eval_storage_lag_seconds{instance="a"}': "0x80 90x320"},
        description="Storage workers are 1m 30s behind the event log.",
        silent={
            "not much": {'eval_storage_lag_seconds{instance="a"}': "50x400"},
            "not for long": {'eval_storage_lag_seconds{instance="a"}': "0x110 90x5 0x300"},
        },
    ),
    "GapsGrowing": Case(
        fires={"eval_storage_gaps_open": "0x100 25x300", "eval_storage_gap_age_seconds": "0x100 0+15x300"},
        description="25 more evaluations than 15m ago have a gap in their event sequence.",
        silent={
            "a few": {"eval_storage_gaps_open": "0x100 5x300", "eval_storage_gap_age_seconds": "900x400"},
            "young ones": {
                "eval_storage_gaps_open": "0x100 50x300",
                "eval_storage_gap_age_seconds": "5x400",
            },
            "bridged long ago": {'eval_storage_gaps_bridged_total{instance="a"}': "99x400"},
        },
    ),
    "QuarantineGrowing": Case(
        fires={'eval_storage_quarantined_total{instance="a"}': "_x300 1x100"},
        at="80m",
        description="Entries quarantined within 1h: 1.",
        silent={"long ago": {'eval_storage_quarantined_total{instance="a"}': "7x400"}},
    ),
}

ALSO_FIRES: dict[str, dict[str, tuple[dict[str, str], Series]]] = {
    "WorkerDown": {
        "scraped, and refuses": (
            {"job": "executor", "instance": "w2", "worker_id": "w2"},
            SILENT | LEFT_BEHIND | scraped("w2", "1x80 0x320", "0.1x80 0.001x320"),
        ),
        "no coordinator counts": ({"job": "executor", "instance": "w2", "worker_id": "w2"}, SILENT),
    },
    "WorkerStalled": {
        "frozen: its scrape times out": (
            {"job": "executor", "instance": "w1"},
            scraped("w1", "1x80 0x320", "0.1x80 10x320"),
        ),
        "answers, and sends no heartbeat": (
            {"job": "executor", "instance": "w1", "worker_id": "w1"},
            scraped("w1", "1x400", "0.1x400") | heartbeats("w1", "0+3x80 240x320"),
        ),
    },
    "AllWorkersDown": {
        "all are down, the coordinators too": (
            {},
            heartbeats("w1", "0+3x80 _x320")
            | {"eval_workers_present": "1x80", 'eval_active_batches{state="running"}': "1x80"},
        ),
    },
    "CoordinatorDown": {
        "several stand by, none leads": ({}, {"eval_coordinator_leading": "0x400"} | BEATING),
        "none ever started": ({}, BEATING),
    },
    "StorageDown": {"none ever started": ({}, BEATING)},
    "BatchStuck": {
        "tasks that hang": (
            {"batch_id": "b"},
            STUCK
            | queue("b", owned=2)
            | {'eval_worker_oldest_task_overdue_seconds{worker_id="w"}': "9x400"},
        ),
        "another waits for a provider batch": (
            {"batch_id": "b"},
            STUCK | queue("b", pending=2) | {"eval_batch_api_open": "1x400"},
        ),
    },
    "DLQGrowing": {
        "an old batch that grows": (
            {"batch_id": "b"},
            {DEAD: "5000x100 5011x300", BEGAN: "-9999x400"},
        ),
    },
    "RateLimitSaturation": {
        "refused, and never granted": (
            {"lane": "openai"},
            {'eval_rate_limit_refused_total{lane="openai",why="retry_after"}': "0+9x400"},
        ),
    },
    "LLMAPIErrors": {
        "calls are not counted": ({"provider": "openai", "kind": "server"}, FAILING),
    },
    "GapsGrowing": {"bridged": ({}, {'eval_storage_gaps_bridged_total{instance="a"}': "_x100 12x300"})},
    "QuarantineGrowing": {
        "one more": ({}, {'eval_storage_quarantined_total{instance="a"}': "7x100 8x300"}),
    },
}
"""Other series with which an alert fires, each with the labels it then has."""
