"""The command that installs an optional extra of this distribution, typed in any folder.

pip records where a distribution came from in `direct_url.json` (PEP 610). An installation from a clone is
extended from that clone, as long as it is there; any other one by the name of the distribution.
"""

import json
import shlex
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

NAME = "scoreline"
_SOURCE = Path(__file__).parents[1]


def install_command(*extras: str) -> str:
    """Return the `pip install` command that adds extras to the installation in use."""
    try:
        found: Distribution | None = distribution(NAME)
    except PackageNotFoundError:
        found = None
    return command_for(found, extras, source=_SOURCE)


def command_for(found: Distribution | None, extras: tuple[str, ...], *, source: Path) -> str:
    """Return the command for an installation; `source` is the folder its packages are imported from."""
    recorded = json.loads((found.read_text("direct_url.json") if found else None) or "{}")
    is_editable = recorded.get("dir_info", {}).get("editable", False)
    clone = next((folder for folder in (_folder(recorded), source) if _is_project(folder)), None)
    requirement = shlex.quote(f"{clone or NAME}[{','.join(extras)}]")
    # Without -e, pip would replace an editable installation by a copy.
    return f"pip install {'-e ' if clone and is_editable else ''}{requirement}"


def _folder(recorded: dict[str, str]) -> Path | None:
    parsed = urlsplit(recorded.get("url", ""))
    return Path(url2pathname(parsed.path)) if parsed.scheme == "file" else None


def _is_project(folder: Path | None) -> bool:
    return folder is not None and (folder / "pyproject.toml").is_file()
