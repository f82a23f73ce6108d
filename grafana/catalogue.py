"""All dashboards, and the files they are checked in as."""

from pathlib import Path

from grafana.model import Dashboard
from grafana.pages import batch, distributed, evaluation, ordering
from grafana.rendering import rendered

FOLDER = Path(__file__).parent / "dashboards"
DASHBOARDS: tuple[Dashboard, ...] = (distributed.PAGE, batch.PAGE, evaluation.PAGE, ordering.PAGE)


def files() -> dict[Path, str]:
    """Return the content of each file."""
    return {FOLDER / f"{each.file}.json": rendered(each) for each in DASHBOARDS}
