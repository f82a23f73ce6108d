"""Settings of metrics and traces, from `EVAL_METRICS_` and `EVAL_TRACE_` names."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field


class TelemetrySettings(BaseModel):
    """Where the metrics and spans of a process go."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    metrics_port: int | None = Field(default=None, ge=0, le=65_535)
    """The port of `/metrics`; 0 is any free port."""
    metrics_host: str = "127.0.0.1"
    metrics_dir: Path | None = None
    """A directory in which each process writes its own address for Prometheus' file discovery."""
    trace_dir: Path | None = None
    trace_ratio: float = Field(default=0.01, ge=0, le=1)
    """Share of evaluations that are traced."""
