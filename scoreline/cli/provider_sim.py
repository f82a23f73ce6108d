"""`scoreline provider-sim`: a provider to practise on."""

from pathlib import Path
from typing import Annotated, Any

import typer

HELP = (
    "Run a provider to practise on, at no cost: Anthropic Messages, Message Batches and OpenAI chat.\n\n"
    "What it answers depends on the request and the seed alone. Its limits are real ones, and it can be "
    "told to be slow, to be overloaded, to break connections and to talk nonsense. While it runs, "
    "GET and POST /_sim/settings show and change all of this, GET /_sim/stats shows what it has seen, "
    'and POST /_sim/outage {"seconds": 10} takes it off the net.'
)
EPILOG = (
    "Examples: scoreline provider-sim   ·   scoreline provider-sim --rpm 3000 --tpm 400000   ·   "
    "scoreline provider-sim --latency 0.8 --latency-p95 3 --overloaded 0.02 --reset-before 0.01   ·   "
    "scoreline provider-sim --answers answers.json --port 0 --json"
)
MAX_ANSWERS = 32 * 1024 * 1024
"""Bytes of a file of answers."""


def _in(panel: str, text: str, **bounds: Any) -> Any:  # noqa: ANN401 - whatever typer makes of it
    return typer.Option(help=text, rich_help_panel=panel, show_default=True, **bounds)


def _share(panel: str, text: str) -> Any:  # noqa: ANN401 - as above
    return _in(panel, f"Share of {text}, from 0 to 1.", min=0, max=1)


def run(  # noqa: PLR0913 - a command has its flags
    *,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65_535, help="0 picks a free one.")] = 8787,
    as_json: Annotated[
        bool, typer.Option("--json", help="Standard output carries one JSON object, and nothing else.")
    ] = False,
    seed: Annotated[int, _in("Answers", "Another seed, other answers and other misfortunes.")] = 0,
    mode: Annotated[str, _in("Answers", "plausible, echo (the prompt), text, or map.")] = "plausible",
    text: Annotated[str, _in("Answers", "What to say in mode text.")] = "This is a simulated answer.",
    answers: Annotated[
        Path | None,
        _in("Answers", "JSON object of prompts and their answers, * for all others; sets mode map."),
    ] = None,
    output_tokens: Annotated[int, _in("Answers", "Usual length of a plausible answer.", min=1)] = 60,
    pass_rate: Annotated[
        float, _share("Answers", "verdicts that pass, where a form is to be filled in")
    ] = 0.8,
    key: Annotated[list[str] | None, _in("Access", "Accept this key; by default any. Repeatable.")] = None,
    model: Annotated[
        list[str] | None, _in("Access", "Have this model; by default any. Repeatable.")
    ] = None,
    forbidden_model: Annotated[
        list[str] | None, _in("Access", "Forbid this model to everybody. Repeatable.")
    ] = None,
    context_tokens: Annotated[int, _in("Access", "Longest prompt.", min=1)] = 200_000,
    rpm: Annotated[float, _in("Limits", "Requests a minute and key; 0 is no limit.", min=0)] = 0,
    tpm: Annotated[float, _in("Limits", "Tokens a minute and key.", min=0)] = 0,
    input_tpm: Annotated[float, _in("Limits", "Input tokens a minute and key.", min=0)] = 0,
    output_tpm: Annotated[float, _in("Limits", "Output tokens a minute and key.", min=0)] = 0,
    per_model: Annotated[bool, _in("Limits", "Count each model of a key by itself.")] = False,
    burst_seconds: Annotated[float, _in("Limits", "Seconds' worth that may come at once.", min=0.001)] = 1,
    concurrency: Annotated[int, _in("Limits", "Calls under way; 0 is no limit.", min=0)] = 0,
    limit_headers: Annotated[bool, _in("Limits", "Say in each reply how the limits stand.")] = True,
    fractional_retry_after: Annotated[bool, _in("Limits", "Not only whole seconds.")] = False,
    latency: Annotated[float, _in("Latency", "Seconds an answer takes, as a median.", min=0)] = 0,
    latency_p95: Annotated[float, _in("Latency", "95 % take no longer; 0: all take the same.", min=0)] = 0,
    overloaded: Annotated[float, _share("Faults", "calls answered with 529 (OpenAI: 503)")] = 0,
    server_error: Annotated[float, _share("Faults", "calls answered with 500")] = 0,
    reset_before: Annotated[float, _share("Faults", "connections reset before the reply")] = 0,
    reset_midway: Annotated[float, _share("Faults", "connections reset in the middle of the reply")] = 0,
    html: Annotated[float, _share("Faults", "replies that are a web page, with 200")] = 0,
    truncated: Annotated[float, _share("Faults", "replies whose JSON ends in the middle")] = 0,
    stream_error: Annotated[float, _share("Faults", "streams that end with an error event")] = 0,
    stream_broken: Annotated[float, _share("Faults", "streams that just end")] = 0,
    batch_seconds: Annotated[float, _in("Batches", "Seconds a message batch takes.", min=0)] = 2,
    batch_expiry: Annotated[float, _in("Batches", "Seconds until a batch expires.", min=0)] = 86_400,
    batch_errored: Annotated[float, _share("Batches", "requests of a batch that err")] = 0,
    batch_expired: Annotated[float, _share("Batches", "requests of a batch that expire")] = 0,
    batch_canceled: Annotated[float, _share("Batches", "requests of a batch that are canceled")] = 0,
    batch_unheard: Annotated[float, _share("Batches", "batches made whose maker never hears of it")] = 0,
    follow_stdin: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run a provider to practise on, at no cost."""
    import uvloop

    from scoreline.local.processes import end_with_parent
    from scoreline.provider_sim.run import run_until_stopped

    if follow_stdin:
        end_with_parent()
    settings = _settings(
        answers,
        seed=seed,
        mode=mode,
        text=text,
        output_tokens=output_tokens,
        pass_rate=pass_rate,
        keys=key or [],
        models=model or [],
        forbidden_models=forbidden_model or [],
        context_tokens=context_tokens,
        rpm=rpm,
        tpm=tpm,
        input_tpm=input_tpm,
        output_tpm=output_tpm,
        per_model=per_model,
        burst_seconds=burst_seconds,
        concurrency=concurrency,
        limit_headers=limit_headers,
        fractional_retry_after=fractional_retry_after,
        latency=latency,
        latency_p95=latency_p95,
        overloaded=overloaded,
        server_error=server_error,
        reset_before=reset_before,
        reset_midway=reset_midway,
        html=html,
        truncated=truncated,
        stream_error=stream_error,
        stream_broken=stream_broken,
        batch_seconds=batch_seconds,
        batch_expiry=batch_expiry,
        batch_errored=batch_errored,
        batch_expired=batch_expired,
        batch_canceled=batch_canceled,
        batch_unheard=batch_unheard,
    )
    announce = _in_json if as_json else _in_words
    uvloop.run(run_until_stopped(settings, host=host, port=port, announce=announce))


def _settings(answers: Path | None, **flags: object) -> Any:  # noqa: ANN401 - importing its type would cost time
    """Check the flags, and read the answers."""
    from providers.json_reader import read_json_file
    from scoreline.problem import Problem
    from scoreline.provider_sim.settings import InvalidSimulatorSettings, SimulatorSettings, changed

    try:
        if answers is not None:
            flags |= {"mode": "map", "answers": read_json_file(answers, limit=MAX_ANSWERS)}
        return changed(SimulatorSettings(), flags)
    except InvalidSimulatorSettings as error:
        raise Problem(str(error)) from None
    except (OSError, ValueError) as error:
        raise Problem(f"can't read the answers in {answers}: {error}") from None


def _in_json(url: str) -> None:
    import json

    typer.echo(json.dumps({"url": url}))


def _in_words(url: str) -> None:
    typer.echo(f"The simulator answers at {url}; stop it with Ctrl-C. To use it, in another terminal:\n")
    for name, value in (("ANTHROPIC_BASE_URL", url), ("ANTHROPIC_API_KEY", "sim")):
        typer.echo(f"export {name}={value}")
    typer.echo(f"\nFor OpenAI: OPENAI_BASE_URL={url}/v1 and OPENAI_API_KEY=sim.")
    typer.echo("Any key will do, unless --key was given: then one of those.")
