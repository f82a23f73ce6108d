"""Settings from `EVAL_` environment variables, validated together. An unknown name is an error."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, ValidationError

from domain.batch_spec import Limits
from domain.eligibility import LABEL_PATTERN
from eventlog.keys import DEFAULT_SHARDS
from eventlog.redaction import KNOWN
from eventlog.secret_sources import secrets_in_url
from executor.settings import MAX_NAME
from scoreline.observability.alert_settings import AlertSettings
from scoreline.observability.telemetry_settings import TelemetrySettings
from storage_worker.settings import Ordering

PREFIX = "EVAL_"
_LABEL = LABEL_PATTERN.strip("^$")
LABELS_PATTERN = rf"^$|^{_LABEL}(,{_LABEL})*$"
TEST_PREFIX = "EVAL_TEST_"
"""Variables of the test suite; ignored here."""

Seconds = Annotated[float, Field(gt=0, le=86_400)]


class RateLimitMode(StrEnum):
    """Scope of the rate limits of a provider."""

    DISTRIBUTED = "distributed"
    """Shared by the fleet, through Redis."""
    PER_WORKER = "per_worker"
    """Each executor separately, with its share."""


class SettingsError(Exception):
    """A setting is unknown or invalid; the text names it and what is allowed."""


class Settings(TelemetrySettings, AlertSettings):
    """Settings from the environment; a flag of the same name overrides one."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    redis_url: str | None = Field(default=None, repr=False)
    postgres_url: str | None = Field(default=None, repr=False)
    data_dir: Path | None = None
    servers_linger: float = Field(default=0.0, ge=0, le=86_400)
    """How long embedded servers outlive their last user, for the next command to find them ready."""
    shards: int = Field(default=DEFAULT_SHARDS, ge=1, le=100)
    ordering: Ordering = Ordering.STRICT
    gap_timeout: Seconds = 30.0
    gap_warning: Seconds = 5.0
    queue_backend: str = "redis"
    worker_id: str | None = Field(default=None, min_length=1, max_length=MAX_NAME)
    worker_labels: str = Field(default="", pattern=LABELS_PATTERN, max_length=5_000)
    """Labels of executors started here, separated by commas: gpu,region=eu."""
    worker_concurrency: int = Field(default=16, ge=1, le=10_000)
    worker_max_retries: int = Field(default=3, ge=0, le=100)
    worker_task_timeout: Seconds = 300.0
    worker_heartbeat_interval: float = Field(default=5.0, gt=0, le=15)
    worker_drain: Seconds = 60.0
    worker_allow_unsandboxed: bool = False
    worker_cgroup: Path | None = None
    rate_limit_rpm: float | None = Field(default=None, gt=0, le=1e9)
    rate_limit_tpm: float | None = Field(default=None, gt=0, le=1e12)
    rate_limit_max_concurrency: int | None = Field(default=None, ge=1, le=1_000_000)
    rate_limit_delay: float = Field(default=0.0, ge=0, le=86_400)
    rate_limit_mode: RateLimitMode = RateLimitMode.DISTRIBUTED
    rate_limit_breaker_failures: int = Field(default=5, ge=1, le=1_000_000)
    rate_limit_breaker_seconds: Seconds = 30.0
    prices: Path | None = None
    """A file with the prices of models that have no built-in price."""
    log_level: str = Field(default="INFO", pattern="^(DEBUG|INFO|WARNING|ERROR)$")
    runbook_url: str | None = Field(default=None, pattern="^https?://", max_length=2000)
    """Where docs/how-to/operations.md is published: the base of the links in alerts."""

    @property
    def labels(self) -> frozenset[str]:
        """Labels of executors started here."""
        return frozenset(label for label in self.worker_labels.split(",") if label)

    @property
    def limits(self) -> Limits:
        """Rate limits of batches submitted here whose spec has none."""
        return Limits(
            self.rate_limit_rpm, self.rate_limit_tpm, self.rate_limit_max_concurrency, self.rate_limit_delay
        )


def load_settings(environ: Mapping[str, str] | None = None, **flags: object) -> Settings:
    """Read and validate the settings; an unknown name is an error, a given flag overrides its setting."""
    environ = os.environ if environ is None else environ
    given: dict[str, object] = {
        name.removeprefix(PREFIX).lower(): value
        for name, value in environ.items()
        if name.startswith(PREFIX) and not name.startswith(TEST_PREFIX)
    }
    given |= {flag: value for flag, value in flags.items() if value is not None}
    try:
        settings = Settings.model_validate(given)
    except ValidationError as error:
        raise SettingsError(_explain(error)) from None
    for url in (settings.redis_url, settings.postgres_url):
        KNOWN.add(secrets_in_url(url or ""))
    return settings


def _explain(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    field = str(first["loc"][0])
    name = PREFIX + field.upper()
    if first["type"] != "extra_forbidden":
        return f"{name}: {first['msg']}."
    near = get_close_matches(field, Settings.model_fields, n=1)
    meant = f" Did you mean {PREFIX}{near[0].upper()}?" if near else ""
    return f"{name} is not a setting of scoreline.{meant}"
