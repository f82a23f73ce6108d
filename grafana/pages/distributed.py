"""The distributed dashboard: is the fleet well, and what holds it up?"""

from grafana.model import Dashboard, Prom, Variable
from grafana.pages import alert_row, fleet_rows, queue_rows
from grafana.pages.addresses import DISTRIBUTED, others

PAGE = Dashboard(
    uid="scoreline-distributed",
    file="evaluation-distributed",
    title="Distributed evaluation",
    description="Health of the fleet, progress of its batches, and bottlenecks.",
    rows=[
        alert_row.ROW,
        fleet_rows.OVERVIEW,
        fleet_rows.BATCHES,
        fleet_rows.WORKERS,
        queue_rows.QUEUE,
        queue_rows.LANES,
        queue_rows.PROVIDER_BATCHES,
    ],
    variables=[
        Variable("batch", "Batch", Prom("label_values(eval_batch_evaluations, batch_id)"), many=True)
    ],
    links=others(DISTRIBUTED),
)
"""Seven rows, from what fires to what was saved."""
