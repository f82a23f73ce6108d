"""What everybody who works on provider batches has at hand."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from coordinator.attempt_opening import AttemptOpener
from coordinator.epochs import EpochTracker
from coordinator.provider_batches.provider import ProviderOf
from coordinator.provider_batches.reservations import BatchReservations
from coordinator.provider_batches.settings import ProviderBatchSettings
from projections.ledger.contract import Batch, Ledger
from projections.ledger.provider_batches import ProviderBatchRepository


@dataclass(frozen=True, slots=True)
class ProviderPorts:
    """The world outside: books, providers, and the environment that prices are named in."""

    repository: ProviderBatchRepository
    provider_of: ProviderOf
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ProviderBatchContext:
    """Ports, and those who open attempts."""

    ledger: Ledger
    ports: ProviderPorts
    attempt_opener: AttemptOpener
    epochs: EpochTracker
    settings: ProviderBatchSettings
    window: int
    """Unfinished evaluations of one batch that executors have been told of."""
    run_id: str
    """The local run whose batches are asked here, with its environment; no others are."""
    least_room: int
    """How much of it must be free before it is worth while to read results."""
    now: Callable[[], datetime]
    new_id: Callable[[], str]
    reservations: BatchReservations | None = None
    """Reserves budget; None where nothing is limited."""

    @property
    def repository(self) -> ProviderBatchRepository:
        """What the ledger knows of provider batches."""
        return self.ports.repository


def is_cancelled(batch: Batch | None) -> bool:
    """Whether nobody wants the answers any more."""
    return batch is None or batch.state in {"cancelled", "expired"}
