"""The dashboard of event ordering: do events arrive in order, and does storage keep up?"""

from grafana.model import Dashboard, Prom, Row, Sql, Step
from grafana.pages.addresses import ORDERING, TO_BATCH, TO_EVALUATION, others
from grafana.panels import NEUTRAL, heat, rising, series, stat, table

WINDOW = "[$__rate_interval]"


def _quantiles(metric: str) -> list[Prom]:
    return [
        Prom(f"histogram_quantile({share}, sum by (le) (rate({metric}_bucket{WINDOW})))", name)
        for share, name in ((0.5, "p50"), (0.95, "p95"), (0.99, "p99"))
    ]


ORDER = Row(
    "Order",
    [
        stat(
            "Out of order",
            Prom(
                "sum(rate(eval_storage_reordered_total[5m]))"
                " / (sum(rate(eval_storage_events_total[5m])) > 0)",
                "share",
            ),
            shows="The share of events that arrived before one with a lower sequence.",
            when_red="A writer uses several connections for one evaluation, or does not wait for acks. "
            "No event is lost: storage restores the order. Evaluation timeline names the writer.",
            unit="percentunit",
            steps=rising(0.01, 0.1),
            width=6,
        ),
        stat(
            "Gaps open",
            Prom("sum(eval_storage_gaps_open)", "gaps"),
            shows="Evaluations that wait for an event with a lower sequence.",
            when_red="Writers are behind or dead: see Age of the oldest gap.",
            unit="short",
            steps=rising(1, 100),
            width=6,
        ),
        stat(
            "Age of the oldest gap",
            Prom("max(eval_storage_gap_age_seconds)", "age"),
            shows="How long the oldest gap has been open. Past `EVAL_GAP_TIMEOUT` it is bridged, if the "
            "evaluation's end is there.",
            when_red="Older than that: its end is missing as well. The coordinator opens another attempt.",
            unit="s",
            steps=rising(5, 30),
            width=6,
        ),
        stat(
            "Ordering",
            Prom("1 - max(eval_storage_degraded)", "waited for"),
            shows="Whether events wait for their predecessors; not with `--ordering degraded`.",
            when_red="Ordering is degraded; restore `--ordering strict` after the incident.",
            unit="bool_yes_no",
            steps=(Step(None, "red"), Step(1, "green")),
            width=6,
        ),
        series(
            "Events by verdict",
            Prom(f"sum by (verdict) (rate(eval_storage_events_total{WINDOW}))", "{{verdict}}"),
            shows="Events by disposition: applied, stale, late, rejected, or a duplicate.",
            when_red="rejected: a writer violates the lifecycle, see Quarantine.",
            unit="ops",
            stacked=True,
        ),
        series(
            "Out of order, per second",
            Prom(f"sum(rate(eval_storage_reordered_total{WINDOW}))", "out of order"),
            shows="Events that arrived before one with a lower sequence, per second.",
            when_red="As for their share, above.",
            unit="ops",
        ),
        series(
            "Gaps, over time",
            Prom("sum(eval_storage_gaps_open)", "open"),
            Prom("sum(eval_storage_gaps_warned_total)", "warned of"),
            Prom("sum(eval_storage_gaps_bridged_total)", "bridged"),
            shows="Open ones, and those warned of and bridged since the workers started.",
            when_red="Bridged means that an event is lost; the table below lists which.",
            unit="short",
            width=12,
        ),
        series(
            "Quarantined",
            Prom("sum(eval_storage_quarantined_total)", "quarantined"),
            shows="Entries that could not be read as events, since the storage workers started.",
            when_red="`scoreline quarantine list` has the reasons.",
            unit="short",
            width=12,
        ),
        table(
            "Bridged gaps",
            Sql("ordering_bridges"),
            shows="The newest 50 bridged gaps, and the missing events.",
            when_red="The writer died with unsent events, or Redis lost them: see its timeline.",
            leads={"evaluation": TO_EVALUATION, "batch": TO_BATCH},
            width=12,
        ),
        table(
            "Quarantine",
            Sql("ordering_quarantine"),
            shows="The newest 50 entries that could not be read as events.",
            when_red="`scoreline quarantine show ID` has the bytes. Fix the writer.",
            leads={"evaluation": TO_EVALUATION},
            width=12,
        ),
    ],
)
"""Do events come as they happened?"""

WRITERS = Row(
    "Event queue of the writers",
    [
        series(
            "Queue depth",
            Prom("sum by (job) (eval_event_queue_depth)", "{{job}}"),
            Prom("max(eval_event_queue_depth)", "deepest"),
            shows="Events recorded and not yet acknowledged by Redis.",
            when_red="Redis is slow or unreachable. Executors continue until their event queue is "
            "full, then wait.",
            unit="short",
            steps=rising(1_000, 10_000),
            width=8,
        ),
        series(
            "From recording to Redis' answer",
            *_quantiles("eval_event_queue_delay_ms"),
            shows="Time from recording an event to Redis' acknowledgement.",
            when_red="Redis' CPU or disk, or the network.",
            unit="ms",
            steps=rising(100, 1_000),
            width=8,
        ),
        series(
            "Held by writers",
            Prom("sum by (job) (eval_event_queue_bytes)", "{{job}}"),
            shows="Memory of unsent events and of the kept tail.",
            when_red="Storage is behind, so tails are kept: see Storage lag.",
            unit="bytes",
            width=8,
        ),
        series(
            "Fenced and refused",
            Prom("sum by (answer) (eval_event_refused_total)", "{{answer}}"),
            shows="Events that Redis rejected since the writers started: fenced, of an attempt that "
            "is over; closed; conflict, another body under a known number; epoch, Redis has lost "
            "something.",
            when_red="conflict: a bug in a writer. epoch: Redis was restarted; check whether with "
            "its data. fenced: an executor that was taken for dead and was not.",
            unit="short",
            width=24,
            height=6,
        ),
    ],
)
"""Do events get out?"""

STORAGE = Row(
    "Storage",
    [
        series(
            "Storage lag",
            Prom("max(eval_storage_lag_seconds)", "lag"),
            shows="Age of the oldest wake-up of the last batch read: how old the tables are.",
            when_red="More storage workers, up to the number of shards; see Postgres' load first.",
            unit="s",
            steps=rising(5, 60),
            width=8,
        ),
        series(
            "Wake-ups not acknowledged",
            Prom("max(eval_storage_backlog)", "backlog"),
            shows="Wake-ups that storage workers have not acknowledged.",
            when_red="As for Storage lag.",
            unit="short",
            width=8,
        ),
        series(
            "Lost races",
            Prom("sum(eval_storage_lost_races_total)", "lost races"),
            shows="Evaluations that another storage worker committed first, since the workers started.",
            when_red="Many: storage workers reclaim from each other too early, because one is slow.",
            unit="short",
            width=8,
        ),
        series(
            "One pass",
            *_quantiles("eval_storage_pass_ms"),
            shows="Duration of reading, ordering and committing one batch of wake-ups.",
            when_red="Postgres is slow to commit: its disk, or a lock of another session.",
            unit="ms",
            steps=rising(500, 5_000),
        ),
        heat(
            "Passes",
            Prom(f"sum by (le) (increase(eval_storage_pass_ms_bucket{WINDOW}))", "{{le}}", form="heatmap"),
            shows="Distribution of the duration of passes.",
            when_red="As for One pass.",
            unit="ms",
        ),
        series(
            "Events committed",
            Prom(f"sum(rate(eval_storage_events_total{WINDOW}))", "events"),
            shows="Events committed to the tables, per second.",
            when_red="0 with a backlog: storage workers or Postgres are down.",
            unit="ops",
            width=8,
        ),
        series(
            "From opening to end, p95",
            Prom(
                "histogram_quantile(0.95,"
                f" sum by (le, eval_mode) (rate(eval_test_duration_ms_bucket{WINDOW})))",
                "{{eval_mode}}",
            ),
            shows="Duration of evaluations by the type of their target.",
            when_red="Mostly time in the queue: see Queue depth of Distributed evaluation.",
            unit="ms",
            width=8,
        ),
        heat(
            "Scores",
            Prom(f"sum by (le) (increase(eval_test_score_bucket{WINDOW}))", "{{le}}", form="heatmap"),
            shows="Scores of completed evaluations.",
            when_red="All in one bucket suddenly: a broken judge.",
            unit="short",
            width=8,
        ),
        series(
            "Verdicts of evaluators",
            Prom(f"sum by (stage) (rate(eval_stage_passed_total{WINDOW}))", "{{stage}} passed"),
            Prom(f"sum by (stage) (rate(eval_stage_failed_total{WINDOW}))", "{{stage}} failed"),
            shows="Verdicts of each evaluator, per second.",
            when_red="An evaluator that only fails: see its reasons.",
            unit="ops",
            width=12,
        ),
        series(
            "Tokens per second",
            Prom(f"sum(rate(eval_tokens_total{WINDOW}))", "tokens"),
            shows="Tokens consumed, as recorded in the tables.",
            when_red="Never red.",
            unit="short",
            steps=NEUTRAL,
            width=12,
        ),
    ],
)
"""Do events get into the tables, and at what price?"""

PAGE = Dashboard(
    uid="scoreline-ordering",
    file="event-ordering",
    title="Event ordering",
    description="Order of arriving events, storage lag, and the cost of ordering.",
    rows=[ORDER, WRITERS, STORAGE],
    links=others(ORDERING),
)
"""From the writers' queues to the tables."""
