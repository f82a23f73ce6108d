"""Which modules our own processes import: never those that lie beside the user's code.

`python -m scoreline` puts the working directory first on the path, and PYTHONPATH comes before the standard
library. A user's `redis.py` or `queue.py` there would take the place of what we import. So those folders
come last; the function of a `python:` target is imported by a process of its own, with Python's usual path.
"""

import os
from collections.abc import Mapping, MutableSequence, Sequence
from pathlib import Path


def demote_user_folders(
    path: MutableSequence[str], argv: Sequence[str], environ: Mapping[str, str]
) -> None:
    """Move the folders of PYTHONPATH and, under `-m`, the working directory to the end of the path."""
    try:
        cwd = str(Path.cwd())
    except FileNotFoundError:  # a folder that was removed holds no modules
        return
    folders = {entry for entry in environ.get("PYTHONPATH", "").split(os.pathsep) if entry}
    if list(argv[:1]) == ["-m"]:
        folders |= {"", cwd}
    theirs = {str(Path(cwd, folder)) for folder in folders}
    last = [entry for entry in path if str(Path(cwd, entry)) in theirs]
    path[:] = [*(entry for entry in path if entry not in last), *dict.fromkeys(last)]
