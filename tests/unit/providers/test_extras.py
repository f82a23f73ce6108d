"""The command that installs an extra: derived from how the distribution was installed."""

import json
import shlex
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Any

import pytest

from providers.extras import command_for, install_command

OTEL = ("otel",)


def installed(tmp_path: Path, direct_url: dict[str, Any] | None) -> Distribution:
    """Write the metadata of an installation as pip leaves it."""
    info = tmp_path / "site-packages" / "scoreline-0.1.0.dist-info"
    info.mkdir(parents=True)
    if direct_url is not None:
        (info / "direct_url.json").write_text(json.dumps(direct_url))
    return PathDistribution(info)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    clone = tmp_path / "a clone"
    clone.mkdir()
    (clone / "pyproject.toml").write_text("")
    return clone


@pytest.mark.parametrize(("editable", "flag"), [(True, "-e "), (False, "")])
def test_an_installation_from_a_clone_is_extended_from_there(
    tmp_path: Path, clone: Path, editable: bool, flag: str
) -> None:
    """The command has its absolute path, quoted for the shell; an editable installation stays editable."""
    found = installed(tmp_path, {"url": clone.as_uri(), "dir_info": {"editable": editable}})
    command = command_for(found, ("otel", "providers"), source=tmp_path / "site-packages")
    assert command == f"pip install {flag}'{clone}[otel,providers]'"
    assert shlex.split(command)[-1] == f"{clone}[otel,providers]"


def test_packages_imported_from_a_clone_without_metadata_name_the_clone(clone: Path) -> None:
    """PYTHONPATH is such a case."""
    assert command_for(None, OTEL, source=clone) == f"pip install '{clone}[otel]'"


def test_any_other_installation_is_extended_by_name(tmp_path: Path) -> None:
    """It came from an index, or from a clone that is gone."""
    source = tmp_path / "site-packages"
    for number, recorded in enumerate((None, {"url": "file:///gone", "dir_info": {}})):
        found = installed(tmp_path / str(number), recorded)
        assert command_for(found, OTEL, source=source) == "pip install 'scoreline[otel]'"


def test_the_installation_in_use_names_a_project_that_exists() -> None:
    """Tests run in a clone."""
    *_, requirement = shlex.split(install_command("parquet"))
    folder, _, extra = requirement.partition("[")
    assert (Path(folder) / "pyproject.toml").is_file()
    assert extra == "parquet]"
