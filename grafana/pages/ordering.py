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
            shows="The share of events that stood in their stream before one with a lower number.",
            when_red="Somebody writes an evaluation over several connections, or without waiting. "
            "Nothing is lost by it: order is restored. See who, in Evaluation timeline.",
            unit="percentunit",
            steps=rising(0.01, 0.1),
            width=6,
        ),
        stat(
            "Gaps open",
            Prom("sum(eval_storage_gaps_open)", "gaps"),
            shows="Evaluations that wait for an event with a lower number.",
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
            "Order waited for",
            Prom("1 - max(eval_storage_degraded)", "waited for"),
            shows="Whether events wait for those before them; not so with `--ordering degraded`.",
            when_red="Somebody switched it off, in an emergency one hopes: switch it on again.",
            unit="bool_yes_no",
            steps=(Step(None, "red"), Step(1, "green")),
            width=6,
        ),
        series(
            "Events by verdict",
            Prom(f"sum by (verdict) (rate(eval_storage_events_total{WINDOW}))", "{{verdict}}"),
            shows="What became of events: applied, stale, late, rejected, or a duplicate.",
            when_red="rejected: a writer that breaks the rules, see Quarantine.",
            unit="ops",
            stacked=True,
        ),
        series(
            "Out of order, a second",
            Prom(f"sum(rate(eval_storage_reordered_total{WINDOW}))", "out of order"),
            shows="Events that stood before one with a lower number.",
            when_red="As for their share, above.",
            unit="ops",
        ),
        series(
            "Gaps, over time",
            Prom("sum(eval_storage_gaps_open)", "open"),
            Prom("sum(eval_storage_gaps_warned_total)", "warned of"),
            Prom("sum(eval_storage_gaps_bridged_total)", "bridged"),
            shows="Open ones, and those warned of and bridged since the workers started.",
            when_red="Bridged means that an event is lost; the table below says which.",
            unit="short",
            width=12,
        ),
        series(
            "Quarantined",
            Prom("sum(eval_storage_quarantined_total)", "quarantined"),
            shows="What could not be taken as an event, since the workers started.",
            when_red="`scoreline quarantine list` says why.",
            unit="short",
            width=12,
        ),
        table(
            "Bridged gaps",
            Sql("ordering_bridges"),
            shows="The newest 50 gaps that were stepped over, and which events are missing.",
            when_red="Who wrote it died with events unsent, or Redis lost them: see its timeline.",
            leads={"evaluation": TO_EVALUATION, "batch": TO_BATCH},
            width=12,
        ),
        table(
            "Quarantine",
            Sql("ordering_quarantine"),
            shows="The newest 50 things that could not be taken as events.",
            when_red="`scoreline quarantine show ID` has the bytes. Mend whoever writes them.",
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
            when_red="Redis is slow or away. Executors go on until their queue is full, then they wait.",
            unit="short",
            steps=rising(1_000, 10_000),
            width=8,
        ),
        series(
            "From recording to Redis' answer",
            *_quantiles("eval_event_queue_delay_ms"),
            shows="How long events wait to be sent and answered.",
            when_red="Redis' CPU or disk, or the net in between.",
            unit="ms",
            steps=rising(100, 1_000),
            width=8,
        ),
        series(
            "Held by writers",
            Prom("sum by (job) (eval_event_queue_bytes)", "{{job}}"),
            shows="What unsent events and the kept tail hold.",
            when_red="Storage is behind, so tails are kept: see Behind.",
            unit="bytes",
            width=8,
        ),
        series(
            "Fenced and refused",
            Prom("sum by (answer) (eval_event_refused_total)", "{{answer}}"),
            shows="Events that Redis did not take, since the writers started: fenced, of an attempt that "
            "is over; closed; conflict, another body under a known number; epoch, Redis has lost "
            "something.",
            when_red="conflict is a mistake in a writer. epoch: Redis was restarted; look whether with "
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
            "Behind",
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
            shows="What storage has still to look at.",
            when_red="As for Behind.",
            unit="short",
            width=8,
        ),
        series(
            "Lost races",
            Prom("sum(eval_storage_lost_races_total)", "lost races"),
            shows="Evaluations that another worker was faster with, since the workers started.",
            when_red="Many: workers take over from each other too soon, because one is slow.",
            unit="short",
            width=8,
        ),
        series(
            "One pass",
            *_quantiles("eval_storage_pass_ms"),
            shows="What it takes to read, order and commit one batch of wake-ups: the price of order.",
            when_red="Postgres is slow to commit: its disk, or another who locks.",
            unit="ms",
            steps=rising(500, 5_000),
        ),
        heat(
            "Passes",
            Prom(f"sum by (le) (increase(eval_storage_pass_ms_bucket{WINDOW}))", "{{le}}", form="heatmap"),
            shows="How many passes took how long.",
            when_red="As for One pass.",
            unit="ms",
        ),
        series(
            "Events brought in",
            Prom(f"sum(rate(eval_storage_events_total{WINDOW}))", "events"),
            shows="Events that came into the tables, a second.",
            when_red="0 with a backlog: the workers are away, or Postgres is.",
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
            shows="How long evaluations live, by the type of their target.",
            when_red="Mostly time in the queue: see Queue depth of Distributed evaluation.",
            unit="ms",
            width=8,
        ),
        heat(
            "Scores",
            Prom(f"sum by (le) (increase(eval_test_score_bucket{WINDOW}))", "{{le}}", form="heatmap"),
            shows="Scores of completed evaluations.",
            when_red="All in one bucket, all of a sudden: a judge that broke.",
            unit="short",
            width=8,
        ),
        series(
            "Verdicts of evaluators",
            Prom(f"sum by (stage) (rate(eval_stage_passed_total{WINDOW}))", "{{stage}} passed"),
            Prom(f"sum by (stage) (rate(eval_stage_failed_total{WINDOW}))", "{{stage}} failed"),
            shows="What each evaluator said, a second.",
            when_red="One that only fails: look at its reasons.",
            unit="ops",
            width=12,
        ),
        series(
            "Tokens a second",
            Prom(f"sum(rate(eval_tokens_total{WINDOW}))", "tokens"),
            shows="What models consumed, as it reaches the tables.",
            when_red="It never is.",
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
    description="Do events arrive in order, does storage keep up, and what does order cost?",
    rows=[ORDER, WRITERS, STORAGE],
    links=others(ORDERING),
)
"""From the writers' queues to the tables."""
