"""`scoreline provider-sim`: a simulated model provider."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from scoreline.cli.option_models import filled

HELP = (
    "Run a simulated provider at no cost: Anthropic Messages, Message Batches and OpenAI chat.\n\n"
    "An answer depends only on the request and the seed. Rate limits are enforced; latency, overload, "
    "broken connections and invalid replies can be configured. While it runs, GET and POST /_sim/settings "
    "show and change the settings, GET /_sim/stats shows the calls it received, "
    'and POST /_sim/outage {"seconds": 10} simulates an outage.'
)
EPILOG = (
    "Examples: scoreline provider-sim   ·   scoreline provider-sim --rpm 3000 --tpm 400000   ·   "
    "scoreline provider-sim --latency 0.8 --latency-p95 3 --overloaded 0.02 --reset-before 0.01   ·   "
    "scoreline provider-sim --answers answers.json --port 0 --json"
)
MAX_ANSWERS = 32 * 1024 * 1024
"""Bytes of a file of answers."""
app = typer.Typer()


def _in(panel: str, text: str, *names: str, **bounds: Any) -> Any:  # noqa: ANN401 - typer's own type
    return typer.Option(*names, help=text, rich_help_panel=panel, show_default=True, **bounds)


def _share(panel: str, text: str) -> Any:  # noqa: ANN401 - as above
    return _in(panel, f"Share of {text}, from 0 to 1.", min=0, max=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorOptions:
    """Flags that are settings of the simulator, by the same names."""

    seed: Annotated[int, _in("Answers", "Seed of answers, latencies and faults.")] = 0
    mode: Annotated[str, _in("Answers", "Kind of answers: plausible, echo (the prompt), text, or map.")] = (
        "plausible"
    )
    text: Annotated[str, _in("Answers", "Answer in mode text.")] = "This is a simulated answer."
    answers: Annotated[
        Path | None,
        _in("Answers", "JSON file of prompts and their answers, * for all others; sets mode map."),
    ] = None
    output_tokens: Annotated[
        int, _in("Answers", "Median length of a plausible answer, in tokens.", min=1)
    ] = 60
    pass_rate: Annotated[float, _share("Answers", "verdicts that pass in structured output")] = 0.8
    keys: Annotated[
        list[str] | None, _in("Access", "Accepted API key (repeatable); default: any.", "--key")
    ] = None
    models: Annotated[
        list[str] | None, _in("Access", "Known model (repeatable); default: any.", "--model")
    ] = None
    forbidden_models: Annotated[
        list[str] | None, _in("Access", "Model that no key may use (repeatable).", "--forbidden-model")
    ] = None
    context_tokens: Annotated[int, _in("Access", "Maximum length of a prompt, in tokens.", min=1)] = 200_000
    rpm: Annotated[float, _in("Limits", "Requests per minute and key; 0: no limit.", min=0)] = 0
    tpm: Annotated[float, _in("Limits", "Tokens per minute and key.", min=0)] = 0
    input_tpm: Annotated[float, _in("Limits", "Input tokens per minute and key.", min=0)] = 0
    output_tpm: Annotated[float, _in("Limits", "Output tokens per minute and key.", min=0)] = 0
    per_model: Annotated[bool, _in("Limits", "Limit each model of a key separately.")] = False
    burst_seconds: Annotated[float, _in("Limits", "Burst, in seconds of the rate.", min=0.001)] = 1
    concurrency: Annotated[int, _in("Limits", "Maximum concurrent calls; 0: no limit.", min=0)] = 0
    limit_headers: Annotated[bool, _in("Limits", "Send rate-limit headers in each reply.")] = True
    fractional_retry_after: Annotated[
        bool, _in("Limits", "Send a Retry-After with fractions of a second.")
    ] = False
    retry_after: Annotated[float, _in("Limits", "Least Retry-After of a 429, in seconds.", min=0)] = 0
    latency: Annotated[float, _in("Latency", "Median latency of a call, in seconds.", min=0)] = 0
    latency_p95: Annotated[float, _in("Latency", "95th percentile of the latency; 0: constant.", min=0)] = 0
    overloaded: Annotated[float, _share("Faults", "calls answered with 529 (OpenAI: 503)")] = 0
    stray_429: Annotated[
        float, _share("Faults", "calls answered with 429 without Retry-After, though no limit is exceeded")
    ] = 0
    server_error: Annotated[float, _share("Faults", "calls answered with 500")] = 0
    reset_before: Annotated[float, _share("Faults", "connections reset before the reply")] = 0
    reset_midway: Annotated[float, _share("Faults", "connections reset in the middle of the reply")] = 0
    html: Annotated[float, _share("Faults", "replies that are a web page, with 200")] = 0
    truncated: Annotated[float, _share("Faults", "replies whose JSON ends in the middle")] = 0
    stream_error: Annotated[float, _share("Faults", "streams that end with an error event")] = 0
    stream_broken: Annotated[float, _share("Faults", "streams that end without an event")] = 0
    batch_seconds: Annotated[float, _in("Batches", "Duration of a message batch, in seconds.", min=0)] = 2
    batch_expiry: Annotated[float, _in("Batches", "Seconds until a batch expires.", min=0)] = 86_400
    batch_errored: Annotated[float, _share("Batches", "requests of a batch that fail")] = 0
    batch_expired: Annotated[float, _share("Batches", "requests of a batch that expire")] = 0
    batch_canceled: Annotated[float, _share("Batches", "requests of a batch that are canceled")] = 0
    batch_unheard: Annotated[
        float, _share("Batches", "batches that are created but whose reply is lost")
    ] = 0
    batch_server_error: Annotated[
        float, _share("Batches", "submissions answered with 500, of which no batch is created")
    ] = 0

    def changes(self) -> dict[str, object]:
        """Return the settings by name; a list that was not given is empty."""
        lists = {"keys", "models", "forbidden_models"}
        values = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "answers"}
        return {name: (value or []) if name in lists else value for name, value in values.items()}


@app.command(help=HELP, epilog=EPILOG)
@filled
def run(
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port; 0 is any free one.")] = 8787,
    as_json: Annotated[
        bool, typer.Option("--json", help="Standard output carries one JSON object, and nothing else.")
    ] = False,
    options: SimulatorOptions,
    follow_stdin: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run a simulated provider."""
    import uvloop

    from scoreline.local.processes import end_with_parent
    from scoreline.provider_sim.run import run_until_stopped

    if follow_stdin:
        end_with_parent()
    announce = _in_json if as_json else _in_words
    uvloop.run(run_until_stopped(_settings(options), host=host, port=port, announce=announce))


def _settings(options: SimulatorOptions) -> Any:  # noqa: ANN401 - importing its type would cost time
    """Check the flags, and read the file of answers."""
    from providers.json_reader import read_json_file
    from scoreline.command_error import CommandError
    from scoreline.provider_sim.settings import InvalidSimulatorSettings, SimulatorSettings, changed

    changes = options.changes()
    try:
        if options.answers is not None:
            changes |= {"mode": "map", "answers": read_json_file(options.answers, limit=MAX_ANSWERS)}
        return changed(SimulatorSettings(), changes)
    except InvalidSimulatorSettings as error:
        raise CommandError(str(error)) from None
    except (OSError, ValueError) as error:
        raise CommandError(f"can't read the answers in {options.answers}: {error}") from None


def _in_json(url: str) -> None:
    import json

    typer.echo(json.dumps({"url": url}))


def _in_words(url: str) -> None:
    typer.echo(f"The simulator answers at {url}; stop it with Ctrl-C. To use it, in another terminal:\n")
    for name, value in (("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", "sim")):
        typer.echo(f"export {name}={value}")
    typer.echo(f"\nFor OpenAI: OPENAI_BASE_URL={url}/v1 and OPENAI_API_KEY=sim.")
    typer.echo("Any key will do, unless --key was given: then one of those.")
