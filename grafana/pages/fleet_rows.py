"""Rows 1 to 3 of the distributed dashboard: overview, batches, workers."""

from grafana.model import Prom, Row, Step
from grafana.pages.addresses import TO_BATCH
from grafana.panels import (
    NEUTRAL,
    bars,
    falling,
    gauge,
    heat,
    joined,
    mappings,
    override,
    rising,
    series,
    stat,
    table,
)

CHOSEN = 'batch_id=~"$batch"'
ENDED = 'state=~"completed|failed|timed_out|cancelled"'

OVERVIEW = Row(
    "Overview",
    [
        gauge(
            "Active workers",
            Prom(
                "count(sum by (worker_id) (rate(eval_worker_heartbeat_total[1m])) > 0)",
                "workers",
                or_zero=True,
            ),
            shows="Executors whose heartbeat Redis took within the last minute.",
            when_red="No executor is alive: start executors (`scoreline worker start`), or see their logs.",
            unit="short",
            largest=64,
            steps=falling(1, 1),
            width=4,
        ),
        gauge(
            "Queue depth",
            Prom("sum(eval_queue_pending_tasks)", "ready", or_zero=True),
            shows="Tasks that are ready to be claimed, of all batches.",
            when_red="Tasks are published faster than they are processed: add executors, or see row "
            "Rate limiting for "
            "a lane that is closed.",
            unit="short",
            largest=20_000,
            steps=rising(5_000, 15_000),
            width=4,
        ),
        gauge(
            "DLQ size",
            Prom("sum(eval_queue_dlq_size)", "dead letters", or_zero=True),
            shows="Evaluations of active batches that failed or timed out for good.",
            when_red="List reasons: `scoreline batch dlq ID`. After the fix: `scoreline batch retry ID`.",
            unit="short",
            largest=100,
            steps=rising(1, 50),
            width=4,
        ),
        stat(
            "Throughput",
            Prom("sum(rate(eval_worker_tasks_processed_total[$__rate_interval]))", "attempts"),
            shows="Attempts that ended, per second.",
            when_red="Nothing ends though there are tasks: see Worker status and Lane state.",
            unit="ops",
            steps=NEUTRAL,
            width=4,
            height=5,
        ),
        stat(
            "Leading coordinators",
            Prom("sum(eval_coordinator_leading)", "leading", or_zero=True),
            shows="Coordinators that hold the leader lock; expected is one.",
            when_red="At 0 no further task is published: start one "
            "(`scoreline coordinator start`), or check that it reaches Postgres.",
            unit="short",
            steps=(Step(None, "red"), Step(1, "green"), Step(2, "red")),
            width=4,
            height=5,
        ),
        stat(
            "Redis and Postgres",
            Prom("min by (dependency) (eval_dependency_up)", "{{dependency}}"),
            shows="Whether the last request of every process to the server succeeded.",
            when_red="A server is unreachable. No data is lost; all processes retry. "
            "Restore it; check its disk first.",
            unit="bool_yes_no",
            steps=(Step(None, "red"), Step(1, "green")),
            defaults={"mappings": mappings({"0": "red", "1": "green"}, {"0": "down", "1": "up"})},
            width=4,
            height=5,
        ),
    ],
)
"""Executors, queue depth, throughput and dependencies."""

BATCHES = Row(
    "Batch progress",
    [
        series(
            "Progress of active batches",
            Prom(
                f"clamp_min(sum(eval_batch_evaluations{{{CHOSEN}, state='pending'}})"
                f" - (sum(eval_queue_owned_tasks{{{CHOSEN}}}) or vector(0)), 0)",
                "pending",
            ),
            Prom(f"sum(eval_queue_owned_tasks{{{CHOSEN}}})", "processing"),
            Prom(
                f"sum by (state) (eval_batch_evaluations{{{CHOSEN}, state!='pending'}})",
                "{{state}}",
            ),
            shows="Evaluations of the selected batches by state; finished batches are removed.",
            when_red="Pending stays and nothing is processed: `scoreline batch status ID` "
            "lists what a batch waits for.",
            unit="short",
            stacked=True,
            width=14,
        ),
        series(
            "Pass rate by batch",
            Prom(
                f"max by (batch_id) (eval_batch_passed{{{CHOSEN}}})"
                f" / (sum by (batch_id) (eval_batch_evaluations{{{CHOSEN}, {ENDED}}}) > 0)",
                "{{batch_id}}",
            ),
            Prom(
                "sum(rate(eval_batch_tests_passed_total[$__rate_interval]))"
                " / (sum(rate(eval_batch_tests_total[$__rate_interval])) > 0)",
                "all, at present",
            ),
            shows="Passed ÷ ended evaluations: dead letters and cancelled ones did not pass.",
            when_red="A sudden fall is a target or a prompt that changed, or a judge that broke: open the "
            "batch and inspect its failures.",
            unit="percentunit",
            width=10,
            defaults={"min": 0, "max": 1},
        ),
        stat(
            "Active batches",
            Prom("sum by (state) (eval_active_batches)", "{{state}}"),
            shows="Unfinished batches by state.",
            when_red="A paused batch needs an operator: `scoreline batch status ID` has the reason.",
            unit="short",
            steps=NEUTRAL,
        ),
        stat(
            "Longest standstill",
            Prom(f"max(eval_batch_idle_seconds{{{CHOSEN}}})", "idle"),
            shows="The longest time since an evaluation of a running batch ended.",
            when_red="`scoreline batch status ID` lists what it waits for; `scoreline batch resume ID` "
            "starts missing processes of a local run.",
            unit="s",
            steps=rising(300, 900),
        ),
        stat(
            "Budget spent",
            Prom(f"max(eval_batch_budget_spent_ratio{{{CHOSEN}}})", "spent"),
            shows="The largest share of a batch's cost or token budget that is spent.",
            when_red="At 100 % it is paused. To continue: `scoreline batch resume ID --max-cost USD`.",
            unit="percentunit",
            steps=rising(0.8, 1.0),
            defaults={"min": 0, "noValue": "no limits"},
        ),
        stat(
            "Stuck evaluations",
            Prom("sum(eval_stuck_evaluations)", "stuck"),
            shows="Claimed evaluations without an event for 15 minutes beyond their time-out.",
            when_red="The coordinator should have opened another attempt: see its log, and one evaluation "
            "with `scoreline replay ID`.",
            unit="short",
            steps=rising(1, 1),
        ),
        series(
            "Batches started and finished",
            Prom("sum by (eval_mode) (eval_distributed_batch_started_total)", "begun, {{eval_mode}}"),
            Prom("sum by (status) (eval_distributed_batch_completed_total)", "over, {{status}}"),
            shows="Batches registered and finished since the coordinator started, by outcome.",
            when_red="`failed` is a batch with nothing but dead letters: `scoreline batch dlq ID`.",
            unit="short",
        ),
        table(
            "Active batches, one by one",
            Prom(f"sum by (batch_id) (eval_batch_evaluations{{{CHOSEN}}})", instant=True, form="table"),
            Prom(
                f"sum by (batch_id) (eval_batch_evaluations{{{CHOSEN}, state!='pending'}})",
                instant=True,
                form="table",
            ),
            Prom(f"max by (batch_id) (eval_batch_cost_usd{{{CHOSEN}}})", instant=True, form="table"),
            Prom(
                f"time() - max by (batch_id) (eval_batch_started_timestamp_seconds{{{CHOSEN}}})",
                instant=True,
                form="table",
            ),
            shows="The 50 oldest active batches; a click on one opens it.",
            when_red="See Longest standstill.",
            width=12,
            transformations=joined(
                "batch_id",
                {
                    "batch_id": "batch",
                    "Value #A": "evaluations",
                    "Value #B": "ended",
                    "Value #C": "cost",
                    "Value #D": "age",
                },
            ),
            units={"evaluations": "short", "ended": "short", "cost": "currencyUSD", "age": "s"},
            leads={"batch": TO_BATCH},
        ),
    ],
)
"""Progress of batches."""

_HEARTBEAT = "eval_worker_heartbeat_total[30s]"

WORKERS = Row(
    "Worker health",
    [
        bars(
            "Tasks by worker",
            Prom("sum by (worker_id) (rate(eval_worker_tasks_processed_total[5m]))", "{{worker_id}}"),
            shows="Attempts that ended, per second and executor, over five minutes.",
            when_red="An executor far below the others is slow or stalled: see Worker status.",
            unit="ops",
            steps=NEUTRAL,
            width=8,
        ),
        heat(
            "Task duration",
            Prom(
                "sum by (le) (increase(eval_worker_task_duration_ms_bucket[$__rate_interval]))",
                "{{le}}",
                form="heatmap",
            ),
            shows="Distribution of the time from claiming a task to its closing event.",
            when_red="A band that climbs is a target that slows down; compare with 429s and lane limits.",
            unit="ms",
            width=8,
        ),
        series(
            "Task duration, p95 by worker",
            Prom(
                "histogram_quantile(0.95, sum by (le, worker_id)"
                " (rate(eval_worker_task_duration_ms_bucket[$__rate_interval])))",
                "{{worker_id}}",
            ),
            shows="95th percentile of the task duration of each executor.",
            when_red="One worker apart from the others: its machine. All of them: the target.",
            unit="ms",
            width=8,
        ),
        table(
            "Worker status",
            Prom("sum by (worker_id) (eval_worker_tasks_processed_total)", instant=True, form="table"),
            Prom('sum by (worker_id) (eval_worker_slots{state="busy"})', instant=True, form="table"),
            Prom("max by (worker_id) (eval_worker_oldest_task_seconds)", instant=True, form="table"),
            Prom(
                "time() - max by (worker_id)"
                f" (max_over_time(timestamp(increase({_HEARTBEAT}) > 0)[15m:5s]))",
                instant=True,
                form="table",
            ),
            Prom(f"sum by (worker_id) (rate({_HEARTBEAT})) > bool 0", instant=True, form="table"),
            shows="Every executor of the last minutes: processed tasks, claimed tasks, and the "
            "time since its "
            "last heartbeat, to half a minute.",
            when_red="`down` without a stop is a killed executor: its tasks are reclaimed after 20 s. "
            "An old task with a live heartbeat is a target that does not return.",
            transformations=joined(
                "worker_id",
                {
                    "worker_id": "worker",
                    "Value #A": "tasks",
                    "Value #B": "busy slots",
                    "Value #C": "oldest task",
                    "Value #D": "last heartbeat",
                    "Value #E": "status",
                },
            ),
            units={"tasks": "short", "busy slots": "short", "oldest task": "s", "last heartbeat": "s"},
            extra=[
                override(
                    "status",
                    mappings=mappings({"0": "red", "1": "green"}, {"0": "down", "1": "alive"}),
                    custom__cellOptions={"type": "color-text"},
                )
            ],
            width=14,
        ),
        series(
            "Attempts by outcome",
            Prom(
                "sum by (status) (rate(eval_worker_tasks_processed_total[$__rate_interval]))",
                "{{status}}",
            ),
            shows="Ended attempts by outcome: retry opens another attempt, lost was reclaimed by "
            "another executor.",
            when_red="Failures or time-outs grow: see Model errors, and `scoreline batch dlq ID`.",
            unit="ops",
            stacked=True,
            width=10,
        ),
        series(
            "Slots",
            Prom("sum by (state) (eval_worker_slots)", "{{state}}"),
            shows="Slots of all executors, busy and free.",
            when_red="All busy with a deep queue: more executors, or more slots each. "
            "All free with a deep queue: a lane is closed.",
            unit="short",
            stacked=True,
            width=8,
        ),
        stat(
            "Past its time-out",
            Prom("max(eval_worker_oldest_task_overdue_seconds)", "overdue"),
            shows="The longest time of a task past its own time-out.",
            when_red="An executor is stuck in a call that can't be cancelled: restart it; its tasks "
            "are reclaimed "
            "by others.",
            unit="s",
            steps=rising(10, 60),
            width=4,
            height=8,
        ),
        series(
            "Model errors",
            Prom(
                "sum by (provider, kind) (rate(eval_llm_errors_total[$__rate_interval]))",
                "{{provider}}: {{kind}}",
            ),
            shows="Calls to models that failed, by provider and kind.",
            when_red="authentication: the key. model_not_found: the name. overloaded, unavailable: wait, "
            "calls are retried automatically.",
            unit="ops",
            width=8,
        ),
        stat(
            "Programs ended by a limit",
            Prom("sum by (reason) (eval_sandbox_kills_total)", "{{reason}}"),
            shows="Sandboxed programs that exceeded a limit, by limit.",
            when_red="One case: a bad answer. Many: limits that are too tight for this batch.",
            unit="short",
            steps=NEUTRAL,
            width=4,
            height=8,
        ),
    ],
)
"""State of each executor."""
