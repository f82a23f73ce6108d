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
REPLAY = "`scoreline replay ID` tells the same in words, with what Postgres does not have yet."
UNFINISHED = "it has not ended"

STANDING = Row(
    "How it stands",
    [
        stat(
            "State",
            Sql("evaluation_state"),
            text=True,
            shows="Where its history stands.",
            when_red="Failed, timed out: the last event says why. `scoreline batch retry` tries again.",
            unit="string",
            defaults={"mappings": mappings(COLORS)},
            width=4,
        ),
        stat(
            "Verdict",
            Sql("evaluation_verdict"),
            text=True,
            shows="What its scorecard says.",
            when_red="See Scores for which evaluator, and its reason.",
            unit="string",
            defaults={"mappings": mappings(VERDICTS), "noValue": "none yet"},
            width=4,
            quiet=UNFINISHED,
        ),
        stat(
            "Attempts",
            Sql("evaluation_attempts"),
            shows="How often it was begun.",
            when_red="See in the events why the earlier ones ended.",
            unit="short",
            steps=rising(2, 4),
            width=4,
        ),
        stat(
            "Score",
            Sql("evaluation_score"),
            shows="What its evaluators came to together.",
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
            shows="What all of its attempts paid for.",
            when_red="Paid twice: ARCHITECTURE.md names the ways that can happen.",
            unit="currencyUSD",
            steps=NEUTRAL,
            width=4,
        ),
        table(
            "The evaluation",
            Sql("evaluation_standing"),
            shows="Which case of which batch it is, and who had it last.",
            when_red=REPLAY,
            units={"attempts": "short", "repetition": "short", "variant": "short"},
            leads={"batch": f"{BATCH}?var-batch=${{__value.raw}}"},
            height=4,
        ),
    ],
)
"""What it came to."""

LIFE = Row(
    "Its life",
    [
        states(
            "States",
            Sql("evaluation_states"),
            colors=COLORS,
            transformations=[
                {"id": "partitionByValues", "options": {"fields": ["attempt"], "keepFields": False}}
            ],
            shows="Which state it was in, an attempt a line. Zoom in: most lives are short.",
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
            shows="Every event, with what became of it: applied; stale, of an attempt that was over; "
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
            shows="What each evaluator said, and why.",
            when_red="A reason that speaks of the evaluator and not of the answer is a bad evaluator.",
            units={"score": "short", "cost": "currencyUSD"},
            width=12,
            height=6,
            quiet=UNFINISHED,
        ),
        table(
            "Bridged gaps",
            Sql("evaluation_bridges"),
            shows="Events that had not arrived when a later one was applied all the same.",
            when_red="A writer died with events unsent, or somebody writes without numbers.",
            width=6,
            height=6,
            quiet="no event was missing",
        ),
        table(
            "Quarantined",
            Sql("evaluation_quarantine"),
            shows="What was found in its stream and could not be taken as an event.",
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
    description="How did one evaluation come to its verdict?",
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
