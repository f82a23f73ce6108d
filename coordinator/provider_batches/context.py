"""The ports and collaborators that all components of provider batches share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from coordinator.attempt_opening import AttemptOpener
from coordinator.epochs import EpochTracker
from coordinator.provider_batches.provider import ProviderOf
from coordinator.provider_batches.reservations import BatchReservations
from coordinator.provider_batches.settings import ProviderBatchSettings
from projections.ledger.batch import Batch
from projections.ledger.contract import Ledger
from projections.ledger.provider_batches import ProviderBatchRepository


@dataclass(frozen=True, slots=True)
class ProviderPorts:
    """The repository, the providers, and the environment variables of prices."""

    repository: ProviderBatchRepository
    provider_of: ProviderOf
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ProviderBatchContext:
    """Ports, the attempt opener, and settings."""

    ledger: Ledger
    ports: ProviderPorts
    attempt_opener: AttemptOpener
    epochs: EpochTracker
    settings: ProviderBatchSettings
    window: int
    """The largest number of published and unfinished evaluations of one batch."""
    run_id: str
    """The local run whose batches are submitted here, with its environment; no others are."""
    least_room: int
    """The room in the window from which results are read."""
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    reservations: BatchReservations | None = None
    """Reserves budget; None where no budgets are kept."""

    @property
    def repository(self) -> ProviderBatchRepository:
        """The ledger's repository of provider batches."""
        return self.ports.repository


def is_cancelled(batch: Batch | None) -> bool:
    """Whether a batch is cancelled, expired or deleted, so that its answers are not needed."""
    return batch is None or batch.state in {"cancelled", "expired"}
