"""`scoreline`, with the periods that no setting shortens: an executor's expiry and a coordinator's scan.

The scenario divides every period of the rules by sixty. These two are constants of the programs, and would
be most of its duration.
"""

from datetime import timedelta

import taskqueue.executor_registry

taskqueue.executor_registry.INSTANCE_TTL = timedelta(seconds=5)  # before any module takes it as a default

import coordinator.metrics_collector  # noqa: E402 - it imports the constant above
from scoreline.cli.main import main  # noqa: E402 - so does this

coordinator.metrics_collector.INTERVAL = 1.0

if __name__ == "__main__":
    main()
