"""The dashboard of one batch, from the tables: how far, how good, how dear, and what went wrong."""

from grafana.model import Dashboard, Row, Sql, Step, Variable
from grafana.pages.addresses import BATCH, DISTRIBUTED, TO_BATCH, TO_EVALUATION, others
from grafana.panels import NEUTRAL, bars, columns, falling, link, mappings, series, stat, table

SAMPLE = "Of a batch of more than 2,000 a sample spread over the whole of it, else all of it."
STATES = {
    "running": "blue",
    "completed": "green",
    "paused": "orange",
    "cancelled": "red",
    "expired": "red",
}
_TO_FLEET = link("distributed evaluation", f"{DISTRIBUTED}?var-batch=${{batch}}")

STANDING = Row(
    "How it stands",
    [
        stat(
            "State",
            Sql("batch_state"),
            text=True,
            shows="What was asked of the batch, or that it is over.",
            when_red="Paused: its reason is in the table What was asked of it. Cancelled, expired: run it "
            "again with `scoreline batch resume ID`, or from its spec.",
            unit="string",
            defaults={"mappings": mappings(STATES)},
            width=4,
        ),
        stat(
            "Mode",
            Sql("batch_mode"),
            text=True,
            shows="Whether executors of a fleet work on it, or those of the command that runs it. "
            "A click opens the fleet.",
            when_red="Not begun for minutes: there is no coordinator, or no executor of its project.",
            unit="string",
            steps=NEUTRAL,
            links=[_TO_FLEET],
            width=4,
        ),
        stat(
            "Workers",
            Sql("batch_worker_count"),
            shows="How many executors have claimed attempts of it, by its events. "
            "Of a batch of more than 500 a sample.",
            when_red="0 while it runs: see Distributed evaluation, Active workers.",
            unit="short",
            steps=falling(1, 1),
            links=[_TO_FLEET],
            width=4,
        ),
        stat(
            "Ended",
            Sql("batch_done"),
            shows="The share of its evaluations that have ended, however.",
            when_red="It never is; if it stands still, `scoreline batch status ID` says why.",
            unit="percentunit",
            steps=NEUTRAL,
            width=4,
        ),
        stat(
            "Pass rate",
            Sql("batch_pass_rate"),
            shows="Passed ÷ ended evaluations: dead letters and cancelled ones did not pass. "
            "Empty without an evaluator.",
            when_red="See below which target, what failed, and whether that is the target's fault.",
            unit="percentunit",
            steps=(Step(None, "blue"),),
            width=4,
        ),
        stat(
            "Cost",
            Sql("batch_cost"),
            shows="All that was paid for it, retries and judges counted.",
            when_red="It never is; a limit is set with `--max-cost`.",
            unit="currencyUSD",
            steps=NEUTRAL,
            width=4,
        ),
        bars(
            "Progress",
            Sql("batch_progress"),
            shows="How many evaluations are where.",
            when_red="failed and timed out are dead letters: see Failed below.",
            unit="short",
            steps=NEUTRAL,
            width=12,
        ),
        series(
            "Ended over time",
            Sql("batch_ended_over_time", form="time_series"),
            stacked=True,
            shows=f"How many ended in each interval, by verdict. {SAMPLE}",
            when_red="A hole is a standstill: compare with the fleet at that time.",
            unit="short",
        ),
    ],
)
"""One line of figures, and how it came there."""

VERDICTS = Row(
    "Verdicts",
    [
        columns(
            "Scores",
            Sql("batch_scores"),
            across="score",
            shows=f"How many evaluations scored what. {SAMPLE}",
            when_red="All in one bin: the evaluator can't tell answers apart.",
            unit="short",
            steps=NEUTRAL,
        ),
        table(
            "By prompt and target",
            Sql("batch_variants"),
            shows=f"Each target with each prompt. {SAMPLE}",
            when_red="`scoreline batch compare` says whether a difference is more than chance.",
            units={
                "ended": "short",
                "pass rate": "percentunit",
                "score": "short",
                "latency": "ms",
                "cost of one": "currencyUSD",
            },
            width=12,
        ),
        stat(
            "Latency",
            Sql("batch_latency"),
            shows=f"50, 95 and 99 % of the answers took no longer. {SAMPLE}",
            when_red="Near the time-out: raise `timeout`, or lower the number of calls at a time.",
            unit="ms",
            steps=NEUTRAL,
            width=6,
            height=8,
            quiet="nothing has completed yet",
        ),
        table(
            "Slowest",
            Sql("batch_slowest"),
            shows=f"Those that took longest; a click opens one. {SAMPLE} `scoreline batch export` has all.",
            when_red="See in its timeline where the time went.",
            units={"latency": "ms", "attempts": "short"},
            leads={"evaluation": TO_EVALUATION},
            width=18,
        ),
    ],
)
"""How good it is."""

FAILED = Row(
    "Failed",
    [
        table(
            "Failed, by kind",
            Sql("batch_dead_kinds"),
            shows="What kind of fault ended evaluations for good; of the newest 5,000.",
            when_red="authentication, model_not_found: mend the spec or the key, then "
            "`scoreline batch retry ID`.",
            units={"evaluations": "short"},
            width=8,
            quiet="nothing failed for good",
        ),
        table(
            "Failed, with reasons",
            Sql("batch_dead"),
            shows="The newest 50 that failed or timed out; a click opens one.",
            when_red="`scoreline batch retry ID` tries them again.",
            units={"attempts": "short"},
            leads={"evaluation": TO_EVALUATION},
            width=16,
            quiet="nothing failed for good",
        ),
    ],
)
"""What went wrong."""

MONEY = Row(
    "Cost and work",
    [
        series(
            "Cost over time",
            Sql("batch_cost_over_time", form="time_series"),
            shows=f"What was spent up to then, by the end of each evaluation. {SAMPLE}",
            when_red="Steeper than planned: pause it, `scoreline batch pause ID`.",
            unit="currencyUSD",
        ),
        table(
            "Workers by attempts",
            Sql("batch_workers"),
            shows="Who claimed how many attempts, by the events. Of a batch of more than 500 a sample.",
            when_red="Many lost or retried with one worker alone: its machine.",
            units={"attempts": "short", "lost or retried": "short"},
            width=12,
        ),
        table(
            "Provider batches",
            Sql("batch_provider_batches"),
            shows="What was asked of a provider in batches.",
            when_red="The note says what keeps one.",
            units={"requests": "short", "took": "s"},
            width=12,
            quiet="answers are asked for one by one",
        ),
        table(
            "What was asked of it",
            Sql("batch_asked"),
            shows="Who paused, resumed, retried or cancelled it, and why.",
            when_red="A pause by the coordinator has its reason here.",
            width=12,
        ),
    ],
)
"""What it took."""

RECENT = Row(
    "Batches",
    [
        table(
            "Newest batches",
            Sql("batch_list"),
            shows="The newest 25; a click chooses one.",
            when_red="Paused ones wait for somebody.",
            units={
                "evaluations": "short",
                "ended": "short",
                "pass rate": "percentunit",
                "cost": "currencyUSD",
            },
            leads={"batch": TO_BATCH},
        )
    ],
)
"""Others."""

PAGE = Dashboard(
    uid="scoreline-batch",
    file="evaluation-batch",
    title="Batch",
    description="How far is a batch, how good, how dear, and what went wrong?",
    rows=[STANDING, VERDICTS, FAILED, MONEY, RECENT],
    variables=[Variable("batch", "Batch", Sql("batch_names"))],
    links=others(BATCH),
    since="now-6h",
    refresh="30s",
)
"""From the tables alone: it works without Prometheus."""
