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
    "Status",
    [
        stat(
            "State",
            Sql("batch_state"),
            text=True,
            shows="The state of the batch.",
            when_red="Paused: its reason is in the table Operations. Cancelled, expired: run it "
            "again with `scoreline batch resume ID`, or from its spec.",
            unit="string",
            defaults={"mappings": mappings(STATES)},
            width=4,
        ),
        stat(
            "Mode",
            Sql("batch_mode"),
            text=True,
            shows="Whether executors of a fleet serve it, or those of a local run. "
            "A click opens the fleet.",
            when_red="Not begun for minutes: no coordinator, or no executor of its project, is alive.",
            unit="string",
            steps=NEUTRAL,
            links=[_TO_FLEET],
            width=4,
        ),
        stat(
            "Workers",
            Sql("batch_worker_count"),
            shows="Executors that have claimed attempts of it, by its events. "
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
            shows="The share of its evaluations that have ended, with any outcome.",
            when_red="Never red; if it does not grow, `scoreline batch status ID` has the reason.",
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
            shows="Total cost, including retries and judges.",
            when_red="Never red; `--max-cost` sets a limit.",
            unit="currencyUSD",
            steps=NEUTRAL,
            width=4,
        ),
        bars(
            "Progress",
            Sql("batch_progress"),
            shows="Evaluations by state.",
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
            when_red="An interval without ends is a standstill: compare with the fleet at that time.",
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
            when_red="All in one bin: the evaluator does not distinguish answers.",
            unit="short",
            steps=NEUTRAL,
        ),
        table(
            "By prompt and target",
            Sql("batch_variants"),
            shows=f"Each target with each prompt. {SAMPLE}",
            when_red="`scoreline batch compare` tests whether a difference is significant.",
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
            shows=f"The slowest evaluations; a click opens one. {SAMPLE} `scoreline batch export` has all.",
            when_red="Its timeline has the time in each state.",
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
            shows="Permanent failures by kind; of the newest 5,000.",
            when_red="authentication, model_not_found: correct the spec or the key, then "
            "`scoreline batch retry ID`.",
            units={"evaluations": "short"},
            width=8,
            quiet="no permanent failures",
        ),
        table(
            "Failed, with reasons",
            Sql("batch_dead"),
            shows="The newest 50 that failed or timed out; a click opens one.",
            when_red="`scoreline batch retry ID` retries them.",
            units={"attempts": "short"},
            leads={"evaluation": TO_EVALUATION},
            width=16,
            quiet="no permanent failures",
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
            shows=f"Cumulative cost by the end of each evaluation. {SAMPLE}",
            when_red="Steeper than planned: pause it, `scoreline batch pause ID`.",
            unit="currencyUSD",
        ),
        table(
            "Workers by attempts",
            Sql("batch_workers"),
            shows="Attempts by executor, from the events. Of a batch of more than 500 a sample.",
            when_red="Many lost or retried with one executor alone: its machine.",
            units={"attempts": "short", "lost or retried": "short"},
            width=12,
        ),
        table(
            "Provider batches",
            Sql("batch_provider_batches"),
            shows="Batches submitted to a provider.",
            when_red="The note has the reason.",
            units={"requests": "short", "took": "s"},
            width=12,
            quiet="calls are sent one by one",
        ),
        table(
            "Operations",
            Sql("batch_operations"),
            shows="Operations on the batch: actor, time and reason.",
            when_red="An automatic pause has its reason here.",
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
            shows="The newest 25; a click selects one.",
            when_red="Paused batches need an operator.",
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
    description="Progress, results, cost and failures of a batch.",
    rows=[STANDING, VERDICTS, FAILED, MONEY, RECENT],
    variables=[Variable("batch", "Batch", Sql("batch_names"))],
    links=others(BATCH),
    since="now-6h",
    refresh="30s",
)
"""From the tables alone: it works without Prometheus."""
