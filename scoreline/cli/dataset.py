"""`scoreline dataset`: files of cases, imported into the database under a name."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from scoreline.cli.option_models import filled

if TYPE_CHECKING:
    from projections.datasets.repository import NewDataset
    from scoreline.submit.datasets.sources import FileSource

app = typer.Typer(help="Import, list and show datasets.", no_args_is_help=True)

Project = Annotated[str, typer.Option(help="Project of the dataset.")]


@app.callback()
def group() -> None:
    """Import, list and show datasets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """Flags of `dataset import`."""

    name: Annotated[str | None, typer.Option(help="Dataset name; default: the file's name.")] = None
    project: Project = "default"
    tag: Annotated[list[str] | None, typer.Option(help="Tag of the dataset (repeatable).")] = None
    records: Annotated[
        str | None,
        typer.Option(metavar="PATH", help="Path of the list of rows in the document: data.rows."),
    ] = None
    id: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Column of the case ids.")] = None
    input: Annotated[
        str | None, typer.Option("--input", metavar="COLUMN", help="Column of the inputs.")
    ] = None
    expected: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of the expected values.")
    ] = None
    replace: Annotated[bool, typer.Option("--replace", help="Replace a dataset of the same name.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object about the import.")] = False

    def dataset(self, file: Path) -> "NewDataset":
        """Return the dataset to create; raises `BadParameter` for a bad name."""
        from projections.datasets.repository import NewDataset
        from scoreline.submit.datasets.file_formats import stem_of
        from scoreline.submit.spec.values import dataset_name
        from scoreline.submit.spec.values import name as name_of_project

        named = _checked(dataset_name, self.name or stem_of(file), "--name")
        whose = _checked(name_of_project, self.project, "--project")
        return NewDataset(named, whose, file.name, tuple(self.tag or ()))

    def source(self, file: Path) -> "FileSource":
        """Return the rows of the file."""
        from scoreline.submit.datasets.columns import Columns
        from scoreline.submit.datasets.sources import FileSource

        return FileSource(file, Columns(self.records, self.id, self.input, self.expected))


@app.command(
    "import",
    epilog="Examples:\n\nscoreline dataset import cases.jsonl\n\n"
    "scoreline dataset import tasks.json.gz --records outputs --id task_id --expected target --replace",
)
@filled
def import_(
    file: Annotated[
        Path,
        typer.Argument(help="Dataset file: JSONL, JSON, CSV or YAML, also with .gz.", show_default=False),
    ],
    *,
    options: ImportOptions,
) -> None:
    """Import a file of cases: all rows, or none if a row is invalid."""
    import asyncio

    from scoreline.local.servers import ready_postgres
    from scoreline.settings import load_settings
    from scoreline.submit.datasets.dataset_import import import_shown
    from scoreline.submit.datasets.file_formats import format_of

    format_of(file)
    dataset, source = options.dataset(file), options.source(file)
    how = {"replace": options.replace, "as_json": options.as_json}
    with ready_postgres(load_settings()) as servers:
        asyncio.run(import_shown(servers.postgres_url, source, dataset, **how))


def _checked(check: Callable[[str], str], text: str, flag: str) -> str:
    try:
        return check(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=flag) from None


@app.command("list", epilog="Example: scoreline dataset list --project nightly --json")
def list_(
    *,
    project: Annotated[str | None, typer.Option(help="Filter by project.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """List imported datasets by name."""
    import asyncio

    from scoreline.local.servers import ready_postgres
    from scoreline.settings import load_settings
    from scoreline.submit.datasets.view import show_list

    with ready_postgres(load_settings()) as servers:
        asyncio.run(show_list(servers.postgres_url, project=project, as_json=as_json))


@app.command(epilog="Example: scoreline dataset show gsm8k --limit 3")
def show(
    name: Annotated[str, typer.Argument(help="Dataset name.", show_default=False)],
    *,
    project: Project = "default",
    limit: Annotated[int, typer.Option(min=0, max=10_000, help="Maximum number of cases shown.")] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show a dataset and its first cases."""
    import asyncio

    from scoreline.local.servers import ready_postgres
    from scoreline.settings import load_settings
    from scoreline.submit.datasets.view import show_one

    with ready_postgres(load_settings()) as servers:
        asyncio.run(
            show_one(servers.postgres_url, project=project, name=name, limit=limit, as_json=as_json)
        )
