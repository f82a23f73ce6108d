"""The simulator's settings: grouped for readers, flat for callers that set them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError

Share = Annotated[float, Field(ge=0, le=1)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=0)]
Mode = Literal["plausible", "echo", "text", "map"]


class InvalidSimulatorSettings(ValueError):  # noqa: N818 - the text is for the user
    """A setting that does not exist, or a value it can't have."""


@dataclass(frozen=True, slots=True)
class AccessSettings:
    """Accepted keys and models; empty lists accept all."""

    keys: frozenset[str] = field(default=frozenset(), repr=False)
    models: tuple[str, ...] = ()
    forbidden_models: tuple[str, ...] = ()
    """They exist, and may not be used."""
    context_tokens: Annotated[int, Field(ge=1)] = 200_000


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """The content of answers."""

    seed: int = 0
    mode: Mode = "plausible"
    text: str = "This is a simulated answer."
    answers: dict[str, Any] = field(default_factory=dict)
    output_tokens: Annotated[int, Field(ge=1)] = 60
    pass_rate: Share = 0.8


@dataclass(frozen=True, slots=True)
class SimulatedRateLimits:
    """Rate limits; 0 means unlimited."""

    rpm: Amount = 0
    tpm: Amount = 0
    input_tpm: Amount = 0
    output_tpm: Amount = 0
    per_model: bool = False
    burst_seconds: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    concurrency: Count = 0
    limit_headers: bool = True
    fractional_retry_after: bool = False
    retry_after: Amount = 0
    """The least Retry-After of a 429, in seconds."""


@dataclass(frozen=True, slots=True)
class FaultSettings:
    """Rates of faults among admitted calls."""

    overloaded: Share = 0
    stray_429: Share = 0
    """429 without Retry-After, though no limit is exceeded."""
    server_error: Share = 0
    reset_before: Share = 0
    reset_midway: Share = 0
    html: Share = 0
    truncated: Share = 0
    stream_error: Share = 0
    stream_broken: Share = 0


@dataclass(frozen=True, slots=True)
class LatencySettings:
    """The latency: lognormal by median and p95, or constant if p95 is 0."""

    latency: Amount = 0
    latency_p95: Amount = 0


@dataclass(frozen=True, slots=True)
class BatchSettings:
    """The behaviour of message batches."""

    batch_seconds: Amount = 2.0
    batch_expiry: Amount = 86_400
    batch_errored: Share = 0
    batch_expired: Share = 0
    batch_canceled: Share = 0
    batch_unheard: Share = 0
    """The share of created batches whose creation reply is lost."""
    batch_server_error: Share = 0
    """The share of submissions answered with 500, of which no batch is created."""


@dataclass(frozen=True, slots=True)
class SimulatorSettings:
    """All of it."""

    access: AccessSettings = AccessSettings()
    answers: AnswerSettings = field(default_factory=AnswerSettings)
    limits: SimulatedRateLimits = SimulatedRateLimits()
    faults: FaultSettings = FaultSettings()
    latency: LatencySettings = LatencySettings()
    batches: BatchSettings = BatchSettings()


Group = Any
"""One of the groups above."""
_GROUPS: dict[str, type[Any]] = {
    "access": AccessSettings,
    "answers": AnswerSettings,
    "limits": SimulatedRateLimits,
    "faults": FaultSettings,
    "latency": LatencySettings,
    "batches": BatchSettings,
}
_HOME = {each.name: group for group, kind in _GROUPS.items() for each in fields(kind)}
_CHECKS = {group: TypeAdapter(kind) for group, kind in _GROUPS.items()}


def changed(settings: SimulatorSettings, changes: Mapping[str, object]) -> SimulatorSettings:
    """Change settings by their names, all or none."""
    if unknown := sorted(set(changes) - set(_HOME)):
        raise InvalidSimulatorSettings(
            f"no such setting: {', '.join(unknown)}; there are {', '.join(_HOME)}"
        )
    for group in {_HOME[name] for name in changes}:
        mine = {name: value for name, value in changes.items() if _HOME[name] == group}
        settings = replace(settings, **{group: _checked(group, asdict(getattr(settings, group)) | mine)})
    return settings


def flat(settings: SimulatorSettings) -> dict[str, object]:
    """List settings by their names; of the accepted keys only how many there are."""
    listed = {name: value for group in _GROUPS for name, value in asdict(getattr(settings, group)).items()}
    return listed | {"keys": len(settings.access.keys)}


def _checked(group: str, values: Mapping[str, object]) -> Group:
    try:
        return _CHECKS[group].validate_python(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        raise InvalidSimulatorSettings(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
