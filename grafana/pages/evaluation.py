"""The dashboard of one evaluation, from the tables: its life, event by event."""

from grafana.model import Dashboard, Row, Sql, Variable
from grafana.pages.addresses import BATCH, EVALUATION, others
from grafana.panels import NEUTRAL, bars, mappings, override, rising, stat, states, table

COLORS = {
    "queued": "#808080",
    "provisioning": "light-blue",
    "running": "blue",
    "responded": "purple",
    "retrying": "orange",
    "completed": "green",
    "failed": "red",
    "timed_out": "dark-red",
    "cancelled": "dark-orange",
}
VERDICTS = {"passed": "green", "failed": "red", "timed_out": "dark-red", "cancelled": "dark-orange"}
REPLAY = "`scoreline replay ID` prints the same, with events that Postgres does not have yet."
UNFINISHED = "it has not ended"

STANDING = Row(
    "Status",
    [
        stat(
            "State",
            Sql("evaluation_state"),
            text=True,
            shows="The state of its event history.",
            when_red="Failed, timed out: the last event has the reason. `scoreline batch retry` "
            "retries it.",
            unit="string",
            defaults={"mappings": mappings(COLORS)},
            width=4,
        ),
        stat(
            "Verdict",
            Sql("evaluation_verdict"),
            text=True,
            shows="The verdict of its scorecard.",
            when_red="See Scores for which evaluator, and its reason.",
            unit="string",
            defaults={"mappings": mappings(VERDICTS), "noValue": "none yet"},
            width=4,
            quiet=UNFINISHED,
        ),
        stat(
            "Attempts",
            Sql("evaluation_attempts"),
            shows="Number of attempts.",
            when_red="See in the events why the earlier ones ended.",
            unit="short",
            steps=rising(2, 4),
            width=4,
        ),
        stat(
            "Score",
            Sql("evaluation_score"),
            shows="The combined score of its evaluators.",
            when_red="See Scores.",
            unit="short",
            steps=NEUTRAL,
            width=4,
            quiet=UNFINISHED,
        ),
        stat(
            "Took",
            Sql("evaluation_took"),
            shows="From its opening to its end, or until now.",
            when_red="See Time in each state.",
            unit="s",
            steps=NEUTRAL,
            width=4,
        ),
        stat(
            "Cost",
            Sql("evaluation_cost"),
            shows="Cost of all its attempts.",
            when_red="Paid twice: ARCHITECTURE.md names the ways that can happen.",
            unit="currencyUSD",
            steps=NEUTRAL,
            width=4,
        ),
        table(
            "The evaluation",
            Sql("evaluation_summary"),
            shows="Its batch, its case, and the executor that owned it last.",
            when_red=REPLAY,
            units={"attempts": "short", "repetition": "short", "variant": "short"},
            leads={"batch": f"{BATCH}?var-batch=${{__value.raw}}"},
            height=4,
        ),
    ],
)
"""What it came to."""

LIFE = Row(
    "Timeline",
    [
        states(
            "States",
            Sql("evaluation_states"),
            colors=COLORS,
            transformations=[
                {"id": "partitionByValues", "options": {"fields": ["attempt"], "keepFields": False}}
            ],
            shows="Its states over time, one line per attempt. Zoom in: most evaluations are short.",
            when_red=REPLAY,
            unit="string",
            height=7,
        ),
        bars(
            "Time in each state",
            Sql("evaluation_durations"),
            of_rows=True,
            shows="How long each state lasted, attempt by attempt.",
            when_red="queued: too few executors. running: the target. responded: the judges.",
            unit="ms",
            steps=NEUTRAL,
            width=8,
            height=10,
        ),
        table(
            "Events",
            Sql("evaluation_events"),
            shows="Every event with its disposition: applied; stale, of an attempt that was over; "
            "late, behind a gap that was bridged; rejected, illegal where it stood.",
            when_red=REPLAY,
            units={
                "attempt": "short",
                "sequence": "short",
                "since last": "ms",
                "stored after": "ms",
            },
            extra=[
                override(
                    "verdict",
                    mappings=mappings(
                        {"applied": "green", "stale": "orange", "late": "orange", "rejected": "red"}
                    ),
                    custom__cellOptions={"type": "color-text"},
                )
            ],
            width=16,
            height=10,
        ),
        table(
            "Scores",
            Sql("evaluation_scores"),
            shows="The verdict and reason of each evaluator.",
            when_red="A reason about the evaluator instead of the answer: the evaluator is faulty.",
            units={"score": "short", "cost": "currencyUSD"},
            width=12,
            height=6,
            quiet=UNFINISHED,
        ),
        table(
            "Bridged gaps",
            Sql("evaluation_bridges"),
            shows="Events that had not arrived when a later one was applied all the same.",
            when_red="A writer died with unsent events, or writes without sequences.",
            width=6,
            height=6,
            quiet="no event was missing",
        ),
        table(
            "Quarantined",
            Sql("evaluation_quarantine"),
            shows="Entries of its stream that could not be read as events.",
            when_red="`scoreline quarantine show ID` has the bytes.",
            width=6,
            height=6,
            quiet="everything could be read",
        ),
    ],
)
"""How it came to that."""

PAGE = Dashboard(
    uid="scoreline-evaluation",
    file="evaluation-timeline",
    title="Evaluation timeline",
    description="The event history of one evaluation up to its verdict.",
    rows=[STANDING, LIFE],
    variables=[
        Variable("batch", "Batch", Sql("batch_names")),
        Variable("evaluation", "Evaluation", Sql("evaluation_names")),
    ],
    links=others(EVALUATION),
    since="now-6h",
    refresh="30s",
)
"""From the tables alone: it works without Prometheus."""
