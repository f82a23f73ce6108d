"""Rows 4 to 6 of the distributed dashboard: queue operations, rate limits, provider batches."""

from grafana.model import Prom, Row
from grafana.panels import NEUTRAL, heat, rising, series, stat, states

WINDOW = "[$__rate_interval]"

QUEUE = Row(
    "Queue operations",
    [
        series(
            "Enqueued, acknowledged, returned",
            Prom(f"sum(rate(eval_queue_enqueue_total{WINDOW}))", "added"),
            Prom(f"sum(rate(eval_queue_ack_total{WINDOW}))", "done"),
            Prom(f"sum by (reason) (rate(eval_queue_nack_total{WINDOW}))", "given back: {{reason}}"),
            shows="Queue operations per second.",
            when_red="Many nacks for retry: the target fails. dlq: evaluations that stay failed until "
            "`scoreline batch retry ID`.",
            unit="ops",
        ),
        series(
            "Reclaimed tasks",
            Prom(f"sum(rate(eval_queue_claim_total{WINDOW}))", "taken over"),
            shows="Tasks reclaimed from executors that stopped extending them.",
            when_red="Executors crash or stall: see Worker status, and their logs.",
            unit="ops",
        ),
        series(
            "Tasks by state",
            Prom("sum(eval_queue_pending_tasks)", "ready"),
            Prom("sum(eval_queue_owned_tasks)", "claimed"),
            shows="Ready in the queue, and claimed by executors.",
            when_red="Only `ready` grows: too few executors.",
            unit="short",
            stacked=True,
            width=8,
        ),
        series(
            "Attempts after the first",
            Prom("sum by (reason) (eval_coordinator_opened_total)", "{{reason}}"),
            shows="Attempts after the first that the coordinator opened since it started, by reason.",
            when_red="`lost`: executors died with claimed tasks.",
            unit="short",
            width=8,
        ),
        series(
            "Reconciliation cycle",
            Prom(
                f"histogram_quantile(0.95, sum by (le) (rate(eval_coordinator_round_ms_bucket{WINDOW})))",
                "p95",
            ),
            Prom(
                f"histogram_quantile(0.5, sum by (le) (rate(eval_coordinator_round_ms_bucket{WINDOW})))",
                "p50",
            ),
            shows="Duration of one reconciliation cycle over all batches.",
            when_red="Beyond some seconds tasks run out before the next window is published: "
            "see Postgres' load and the number of batches.",
            unit="ms",
            steps=rising(5_000, 15_000),
            width=8,
        ),
    ],
)
"""What happens to tasks."""

_WAIT = f"sum by (le, lane) (rate(eval_rate_limit_wait_ms_bucket{WINDOW}))"

LANES = Row(
    "Rate limiting",
    [
        series(
            "Wait for a permit, p95",
            Prom(f"histogram_quantile(0.95, {_WAIT})", "{{lane}}"),
            shows="Time an executor waited for a permit of the lane.",
            when_red="The rate limit is the bottleneck: request a higher one from the provider, or use "
            "`--batch-api`, which has limits of its own and half the price.",
            unit="ms",
            steps=rising(5_000, 30_000),
            width=8,
        ),
        heat(
            "Waits",
            Prom(
                f"sum by (le) (increase(eval_rate_limit_wait_ms_bucket{WINDOW}))", "{{le}}", form="heatmap"
            ),
            shows="Distribution of waits for a permit, all lanes.",
            when_red="As for the p95 beside it.",
            unit="ms",
            width=8,
        ),
        series(
            "Calls per minute against the limit",
            Prom(f"60 * sum by (lane) (rate(eval_rate_limit_acquired_total{WINDOW}))", "{{lane}}"),
            Prom("max by (lane) (eval_lane_rpm_limit)", "limit of {{lane}}"),
            shows="Permits granted per minute, and the lane's limit.",
            when_red="Far below the limit with tasks waiting: concurrency or tokens are the bottleneck, "
            "see Refused.",
            unit="short",
            width=8,
        ),
        series(
            "Refused, by reason",
            Prom(f"sum by (lane, why) (rate(eval_rate_limit_refused_total{WINDOW}))", "{{lane}}: {{why}}"),
            shows="Rejected requests for a permit. rate, tokens and concurrency are limits; "
            "retry_after is the "
            "provider's wish; breaker is a provider that does not answer.",
            when_red="breaker: check whether the provider is up. retry_after: the configured limits "
            "are too high.",
            unit="ops",
            width=8,
        ),
        states(
            "Lane state",
            Prom("max by (lane) (eval_lane_open)", "{{lane}}"),
            shows="Whether the lane grants permits.",
            when_red="Closed for long: see Refused for the reason, Breaker for the provider's health.",
            unit="bool_on_off",
            colors={"0": "red", "1": "green"},
            words={"0": "closed", "1": "open"},
            width=8,
        ),
        states(
            "Breaker",
            Prom("max by (lane) (eval_lane_breaker_state)", "{{lane}}"),
            shows="Closed lets calls through; open keeps them back after failures in a row; half open "
            "tries one.",
            when_red="The provider does not answer. A half-open probe retries it automatically.",
            unit="short",
            colors={"0": "green", "1": "orange", "2": "red"},
            words={"0": "closed", "1": "half open", "2": "open"},
            width=8,
        ),
        series(
            "Concurrency against the AIMD limit",
            Prom("max by (lane) (eval_lane_in_flight)", "{{lane}}"),
            Prom("max by (lane) (eval_lane_concurrency_limit)", "allowed in {{lane}}"),
            shows="Calls in flight of the whole fleet, and the limit of the AIMD controller: it adds one "
            "at a time, and halves on a 429.",
            when_red="A limit that keeps falling: the provider is overloaded, or another client uses "
            "the same key.",
            unit="short",
            width=12,
        ),
        series(
            "429s",
            Prom(f"sum by (lane) (rate(eval_rate_limit_throttled_total{WINDOW}))", "{{lane}}"),
            shows="Calls that the provider rejected with 429, per second. They are repeated and "
            "use up no retry.",
            when_red="More than a few: set `rpm` and `tpm` in the spec to what the account really has.",
            unit="ops",
            width=6,
        ),
        series(
            "Token limits per minute",
            Prom("max by (lane) (eval_lane_tpm_limit)", "{{lane}}"),
            shows="As configured, or as advertised by the provider's headers; absent where unknown.",
            when_red="Lower than the account's: see the limits in the spec.",
            unit="short",
            width=6,
        ),
    ],
)
"""What keeps calls back."""

PROVIDER_BATCHES = Row(
    "Batch API",
    [
        series(
            "Submitted and open",
            Prom("sum by (provider) (eval_batch_api_submitted_total)", "submitted, {{provider}}"),
            Prom("max(eval_batch_api_open)", "open"),
            shows="Provider batches submitted since the coordinator started, and those not yet over.",
            when_red="Submitted stays though a batch waits: see its note in `scoreline batch status ID`.",
            unit="short",
            width=8,
        ),
        series(
            "Results by outcome",
            Prom("sum by (outcome) (eval_batch_api_requests_total)", "{{outcome}}"),
            shows="Results collected since the coordinator started.",
            when_red="errored and expired requests are repeated according to `--batch-fallback`.",
            unit="short",
            width=8,
        ),
        series(
            "From submission to its end",
            Prom(
                "histogram_quantile(0.95, sum by (le) (eval_batch_api_poll_duration_seconds_bucket))", "p95"
            ),
            Prom(
                "histogram_quantile(0.5, sum by (le) (eval_batch_api_poll_duration_seconds_bucket))", "p50"
            ),
            shows="How long provider batches took, of all that ended.",
            when_red="Beyond 24 h they expire. `scoreline batch resume ID --no-batch-api` sends "
            "single calls.",
            unit="s",
            steps=rising(43_200, 82_800),
            width=8,
        ),
        stat(
            "Saved",
            Prom("sum(eval_batch_api_saved_usd_total)", "saved"),
            shows="Savings by the batch discount since the coordinator started.",
            when_red="Never red.",
            unit="currencyUSD",
            steps=NEUTRAL,
            width=12,
        ),
        stat(
            "Saved of what single calls would have cost",
            Prom(
                "sum(eval_batch_api_saved_usd_total)"
                " / (sum(eval_batch_api_saved_usd_total) + sum(eval_cost_usd_total))",
                "saved",
            ),
            shows="What was saved, against that and all that was paid.",
            when_red="Never red. Low: more of the work could go through `--batch-api`.",
            unit="percentunit",
            steps=NEUTRAL,
            width=12,
        ),
    ],
)
"""What providers do in batches, and what that saves."""
