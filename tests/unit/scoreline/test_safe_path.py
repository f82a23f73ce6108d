"""The path that our own processes import from: folders of the user come last."""

import os
from pathlib import Path

from scoreline.safe_path import demote_user_folders

OURS = ["/usr/lib/python3", "/venv/site-packages"]


def test_folders_of_pythonpath_come_after_ours() -> None:
    """They can still be imported from; nothing there takes the place of what we import."""
    path = ["/home/ada/project", "/home/ada/lib", *OURS]
    demote_user_folders(path, ["scoreline"], {"PYTHONPATH": f"/home/ada/project{os.pathsep}/home/ada/lib"})
    assert path == [*OURS, "/home/ada/project", "/home/ada/lib"]


def test_the_working_directory_comes_last_under_m() -> None:
    """`python -m scoreline` puts it first; a script's own folder stays where it is."""
    here = str(Path.cwd())
    path, script = [here, *OURS], ["/venv/bin", *OURS]
    demote_user_folders(path, ["-m", "batch"], {})
    demote_user_folders(script, ["/venv/bin/scoreline"], {})
    assert (path, script) == ([*OURS, here], ["/venv/bin", *OURS])


def test_a_relative_folder_is_meant_from_the_working_directory() -> None:
    """`PYTHONPATH=.` names the same folder as its full path does."""
    path = [str(Path.cwd()), *OURS]
    demote_user_folders(path, ["scoreline"], {"PYTHONPATH": "."})
    assert path == [*OURS, str(Path.cwd())]
