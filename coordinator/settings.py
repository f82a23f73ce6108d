"""Settings of a coordinator; the defaults suit a fleet."""

from dataclasses import dataclass, field
from datetime import timedelta

from coordinator.provider_batches.settings import ProviderBatchSettings
from domain.ids import FLEET


@dataclass(frozen=True, slots=True)
class CoordinatorSettings:
    """Intervals and sizes."""

    name: str = "coordinator"
    run_id: str = FLEET
    """The local run whose batches it leads; it leads no others."""
    window: int = 20_000
    """The largest number of published and unfinished evaluations of one batch."""
    page_size: int = 2_000
    """Evaluations published, opened or ended at a time."""
    cycle_interval: timedelta = timedelta(milliseconds=250)
    reconcile_interval: timedelta = timedelta(seconds=5)
    unchanged_for: timedelta = timedelta(seconds=5)
    """The time without progress after which an evaluation is reconciled."""
    grace: timedelta = timedelta(seconds=10)
    """The grace period in which owners re-append their attempts after Redis lost data."""
    unregister_delay: timedelta = timedelta(seconds=5)
    """How long a stopped batch stays in the batch registry: executors poll it every second, and abort."""
    provider: ProviderBatchSettings = field(default_factory=ProviderBatchSettings)
    hung_grace: timedelta = timedelta(seconds=30)
    """The margin beyond the attempt deadline before the owner of an attempt counts as hung."""
