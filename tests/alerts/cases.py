"""For each alert: series with which it fires, what it then says, and series like them with which not.

A series is written as promtool takes it: `0+4x20` is 0, 4, 8 … with one sample every 15 s, `_` is none.
"""

from dataclasses import dataclass, field

Series = dict[str, str]

WORKER = 'eval_worker_heartbeat_total{job="executor",instance="%s",worker_id="%s"}'
UP = 'up{job="executor",instance="%s"}'
TOOK = 'scrape_duration_seconds{job="executor",instance="%s"}'
RUNNING = {'eval_active_batches{state="running"}': "1x400"}


@dataclass(frozen=True, slots=True)
class Case:
    """One alert."""

    fires: Series
    says: str
    silent: dict[str, Series]
    """What is like it and no reason to wake anybody, each with a name."""
    labels: dict[str, str] = field(default_factory=dict)
    at: str = "30m"


def beats(worker: str, values: str) -> Series:
    return {WORKER % (worker, worker): values}


def asked(worker: str, up: str, took: str) -> Series:
    return {UP % worker: up, TOOK % worker: took}


def processed(success: int, failure: int) -> Series:
    counts = {"success": success, "failure": failure, "retry": 500, "lost": 500}
    name = 'eval_worker_tasks_processed_total{worker_id="%s",status="%s"}'
    return {name % (w, status): f"0+{n}x400" for w in "ab" for status, n in counts.items()}


def queue(batch: str, *, pending: int = 0, delayed: int = 0, owned: int = 0) -> Series:
    counts = {"pending": pending, "delayed": delayed, "owned": owned}
    return {f'eval_queue_{name}_tasks{{batch_id="{batch}"}}': f"{n}x400" for name, n in counts.items()}


def waits(milliseconds: int) -> Series:
    """Waits of a lane, all of them so long."""
    name = 'eval_rate_limit_wait_ms_bucket{lane="openai",le="%s"}'
    buckets = [100, 1000, 5000, 10000, 60000]
    seen = {name % le: "0+10x400" if le >= milliseconds else "0x400" for le in buckets}
    return {**seen, name % "+Inf": "0+10x400", 'eval_rate_limit_acquired_total{lane="openai"}': "0+10x400"}


BEATING = beats("w1", "0+3x400") | beats("w2", "0+3x400")
SILENT = beats("w1", "0+3x400") | beats("w2", "0+3x80 _x320")
"""The second sends no more after 20 minutes."""
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
        says="Executor w2 (w2) sent 240 heartbeats and then no more, and no other has taken its place."
        " What it had in hand is given to others.",
        silent={
            "all beat": BEATING | {"eval_workers_present": "2x400"},
            "it said goodbye": SILENT
            | LEFT_BEHIND
            | {
                'eval_worker_stopped_total{instance="w2",worker_id="w2",reason="requested"}': (
                    "_x79 1 1 _x320"
                ),
            },
            "it is asked, and was taken off the list": SILENT
            | LEFT_BEHIND
            | asked("w2", "1x80 _x320", "0.1x80 _x320"),
            "it is frozen, which WorkerStalled tells": SILENT
            | LEFT_BEHIND
            | asked("w2", "1x80 0x320", "0.1x80 10x320"),
            "it was started again under its name": SILENT
            | LEFT_BEHIND
            | {WORKER % ("w2-again", "w2"): "_x84 0+3x320"},
            "another has taken its place": SILENT | {"eval_workers_present": "2x82 1x2 2x318"},
        },
    ),
    "WorkerStalled": Case(
        fires={OVERDUE % 'job="executor",instance="i",worker_id="w"': "0x80 0+15x320"},
        labels={"job": "executor", "instance": "i", "worker_id": "w"},
        says="Executor w (i) does not answer, sends no heartbeat, or has had a task for 9m 45s longer than"
        " the task's time-out.",
        silent={
            "a task of an hour in its time": {
                'eval_worker_oldest_task_seconds{instance="i",worker_id="w"}': "0+15x400",
                'eval_worker_oldest_task_overdue_seconds{instance="i",worker_id="w"}': "0x400",
            },
            "idle": asked("w1", "1x400", "0.1x400") | beats("w1", "0+3x400"),
            "dead, which WorkerDown tells": asked("w1", "1x80 0x320", "0.1x80 0.001x320"),
        },
    ),
    "AllWorkersDown": Case(
        fires={"eval_workers_present": "2x80 0x320"} | RUNNING,
        says="0 executors are alive, and batches are running: nothing goes on.",
        silent={
            "nothing to do": {
                "eval_workers_present": "0x400",
                'eval_active_batches{state="running"}': "0x400",
                'eval_active_batches{state="paused"}': "1x400",
            },
            "one is left": {"eval_workers_present": "2x80 1x320"} | RUNNING,
            "nobody counts them, and they beat": BEATING | {'eval_active_batches{state="running"}': "1x80"},
        },
    ),
    "CoordinatorDown": Case(
        fires={'eval_coordinator_leading{instance="c1"}': "1x80 _x320"} | RUNNING,
        says="0 coordinators lead. What is handed out will be finished; nothing new is published, retried"
        " or closed.",
        silent={
            "another took over": {
                'eval_coordinator_leading{instance="c1"}': "1x80 _x320",
                'eval_coordinator_leading{instance="c2"}': "0x82 1x318",
            }
            | RUNNING,
            "nobody can, for Redis is away": {
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
        says="Events pile up in Redis, and no result reaches PostgreSQL.",
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
        says="No executor gets through to Redis. Nothing can be handed out or recorded.",
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
        says="No storage-worker gets through to PostgreSQL. Nothing can be accepted or stored.",
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
        says="otel-collector:8889 does not answer. No other alert can be trusted until it does.",
        silent={
            "it answers": {'up{job="otel-collector",instance="otel-collector:8889"}': "1x400"},
            "an executor": {'up{job="executor",instance="e"}': "0x400"},
        },
    ),
    "QueueBacklog": Case(
        fires=queue("b", pending=2000, delayed=2000) | {'eval_queue_ack_total{worker_id="w"}': "0+15x400"},
        says="At the present pace, what is in the queue takes 1h 6m 40s.",
        silent={
            "much, and fast": queue("b", pending=20_000)
            | {'eval_queue_ack_total{worker_id="w"}': "0+300x400"},
            "just within the hour": queue("b", pending=3500)
            | {'eval_queue_ack_total{worker_id="w"}': "0+15x400"},
            "no pace at all, which BatchStuck tells": queue("b", pending=2000)
            | {'eval_queue_ack_total{worker_id="w"}': "7x400"},
        },
    ),
    "DLQGrowing": Case(
        fires={DEAD: "_x4 11x400", BEGAN: "60x400"},
        labels={"batch_id": "b"},
        says="Batch b has 11 more dead letters than 1h ago.",
        silent={
            "ten": {DEAD: "0x100 10x400", BEGAN: "60x400"},
            "many, and long ago": {DEAD: "5000x400", BEGAN: "-9999x400"},
            "fewer, for they were tried again": {DEAD: "500x100 20x400", BEGAN: "-9999x400"},
        },
    ),
    "StalledTasks": Case(
        fires={'eval_queue_claim_total{worker_id="a"}': "0+3x400"},
        says="200m tasks a second are taken over from executors that left them.",
        silent={
            "one crash with sixteen in hand": {'eval_queue_claim_total{worker_id="a"}': "0x100 16x300"},
            "now and then": {'eval_queue_claim_total{worker_id="a"}': "0+1x400"},
        },
    ),
    "BatchStuck": Case(
        fires=STUCK | queue("b", pending=5),
        labels={"batch_id": "b"},
        says="Nothing of batch b has ended for 30m 0s.",
        silent={
            "long, with progress": {
                'eval_batch_started_timestamp_seconds{batch_id="b"}': "-99999x400",
                'eval_batch_idle_seconds{batch_id="b"}': "300x400",
            }
            | queue("b", pending=5),
            "long tasks, in their time": STUCK
            | queue("b", pending=5, owned=2)
            | {'eval_worker_oldest_task_overdue_seconds{worker_id="w"}': "0x400"},
            "it lies at a provider": STUCK | queue("b") | {"eval_batch_api_open": "1x400"},
            "paused": {'eval_batch_idle_seconds{batch_id="b"}': "0x400"} | queue("b", pending=5),
        },
    ),
    "StuckEvaluations": Case(
        fires={"eval_stuck_evaluations": "0x80 3x320"},
        says="3 evaluations have not moved for 15 minutes beyond their time-out.",
        silent={
            "none": {"eval_stuck_evaluations": "0x400"},
            "not for long": {"eval_stuck_evaluations": "0x110 3x5 0x300"},
        },
    ),
    "HighFailureRate": Case(
        fires=processed(89, 11),
        says="11% of what ended in the last 10m was given up.",
        silent={
            "nine of a hundred": processed(91, 9),
            "too few to tell": {
                'eval_worker_tasks_processed_total{worker_id="a",status="success"}': "0x100 2x300",
                'eval_worker_tasks_processed_total{worker_id="a",status="failure"}': "0x100 3x300",
            },
            "retries that come good": processed(100, 0),
        },
    ),
    "BudgetNearlySpent": Case(
        fires={'eval_batch_budget_spent_ratio{batch_id="b"}': "0.91x400"},
        labels={"batch_id": "b"},
        says="Batch b has spent 91% of its budget.",
        silent={"not yet": {'eval_batch_budget_spent_ratio{batch_id="b"}': "0.89x400"}},
    ),
    "BatchCompleted": Case(
        fires={FINISHED: "_x110 1650x300"},
        labels={"batch_id": "nightly-7", "status": "partial"},
        says="Batch nightly-7 finished 2m 30s ago with status partial.",
        silent={"long ago": {FINISHED: "1200x400"}},
    ),
    "RateLimitSaturation": Case(
        fires=waits(10_000),
        labels={"lane": "openai"},
        says="One call in twenty waits 9.75s or more for openai.",
        silent={
            "short waits": waits(1000),
            "refused now and then, and served": waits(1000)
            | {'eval_rate_limit_refused_total{lane="openai",why="rate"}': "0+99x400"},
        },
    ),
    "LLMAPIErrors": Case(
        fires=FAILING | {CALLS: "0+10x400"},
        labels={"provider": "openai", "kind": "server"},
        says="200m calls a second to openai fail: server.",
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
        says="The breaker of openai has opened: its calls failed one after the other.",
        silent={
            "closed": {'eval_lane_breaker_state{lane="openai"}': "0x400"},
            "for a moment": {'eval_lane_breaker_state{lane="openai"}': "0x118 2x1 0x300"},
        },
    ),
    "StorageLag": Case(
        fires={'eval_storage_lag_seconds{instance="a"}': "0x80 90x320"},
        says="Storage workers are 1m 30s behind the log.",
        silent={
            "not much": {'eval_storage_lag_seconds{instance="a"}': "50x400"},
            "not for long": {'eval_storage_lag_seconds{instance="a"}': "0x110 90x5 0x300"},
        },
    ),
    "GapsGrowing": Case(
        fires={"eval_storage_gaps_open": "0x100 25x300", "eval_storage_gap_age_seconds": "0x100 0+15x300"},
        says="25 evaluations more than 15m ago lack an event.",
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
        says="1 entries were put into quarantine in the last hour.",
        silent={"long ago": {'eval_storage_quarantined_total{instance="a"}': "7x400"}},
    ),
}

BESIDES: dict[str, dict[str, tuple[dict[str, str], Series]]] = {
    "WorkerDown": {
        "asked, and refuses": (
            {"job": "executor", "instance": "w2", "worker_id": "w2"},
            SILENT | LEFT_BEHIND | asked("w2", "1x80 0x320", "0.1x80 0.001x320"),
        ),
        "no coordinator counts": ({"job": "executor", "instance": "w2", "worker_id": "w2"}, SILENT),
    },
    "WorkerStalled": {
        "frozen: asked, and times out": (
            {"job": "executor", "instance": "w1"},
            asked("w1", "1x80 0x320", "0.1x80 10x320"),
        ),
        "answers, and sends no heartbeat": (
            {"job": "executor", "instance": "w1", "worker_id": "w1"},
            asked("w1", "1x400", "0.1x400") | beats("w1", "0+3x80 240x320"),
        ),
    },
    "AllWorkersDown": {
        "all is gone, the coordinators too": (
            {},
            beats("w1", "0+3x80 _x320")
            | {"eval_workers_present": "1x80", 'eval_active_batches{state="running"}': "1x80"},
        ),
    },
    "CoordinatorDown": {
        "several stand by, nobody leads": ({}, {"eval_coordinator_leading": "0x400"} | BEATING),
        "none ever came": ({}, BEATING),
    },
    "StorageDown": {"none ever came": ({}, BEATING)},
    "BatchStuck": {
        "tasks that hang": (
            {"batch_id": "b"},
            STUCK
            | queue("b", owned=2)
            | {'eval_worker_oldest_task_overdue_seconds{worker_id="w"}': "9x400"},
        ),
        "another lies at a provider": (
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
        "refused, and never served": (
            {"lane": "openai"},
            {'eval_rate_limit_refused_total{lane="openai",why="retry_after"}': "0+9x400"},
        ),
    },
    "LLMAPIErrors": {
        "nobody counts calls": ({"provider": "openai", "kind": "server"}, FAILING),
    },
    "GapsGrowing": {"bridged": ({}, {'eval_storage_gaps_bridged_total{instance="a"}': "_x100 12x300"})},
    "QuarantineGrowing": {
        "one more": ({}, {'eval_storage_quarantined_total{instance="a"}': "7x100 8x300"}),
    },
}
"""Other ways in which an alert comes about, each with the labels it then has."""
