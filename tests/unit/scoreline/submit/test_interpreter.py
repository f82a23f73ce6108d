"""The Python that runs functions of a batch: the submitter's, wherever Scoreline itself is installed."""

from pathlib import Path

from scoreline.submit.interpreter import submitters_interpreter


def program(path: Path) -> Path:
    """Write an executable file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_the_active_virtual_environment_comes_first(tmp_path: Path):
    """Also where Scoreline was installed by pipx."""
    (tmp_path / "pipx_metadata.json").touch()
    python = program(tmp_path / "venv/bin/python")
    environ = {"VIRTUAL_ENV": str(tmp_path / "venv"), "PATH": ""}
    assert submitters_interpreter(environ, own="own", prefix=str(tmp_path)) == str(python)


def test_a_virtual_environment_that_was_removed_is_ignored(tmp_path: Path):
    """A shell keeps the variable after its folder is gone."""
    environ = {"VIRTUAL_ENV": str(tmp_path / "gone")}
    assert submitters_interpreter(environ, own="own", prefix=str(tmp_path)) == "own"


def test_an_environment_of_a_tool_is_not_used(tmp_path: Path):
    """pipx and uv install none of the user's packages there: the PATH's Python may have them."""
    python = program(tmp_path / "bin/python3")
    for mark in ("pipx_metadata.json", "uv-receipt.toml"):
        prefix = tmp_path / mark.partition(".")[0]
        prefix.mkdir()
        (prefix / mark).touch()
        for path, expected in ((python.parent, str(python)), (prefix, "own")):
            assert submitters_interpreter({"PATH": str(path)}, own="own", prefix=str(prefix)) == expected


def test_otherwise_it_is_scorelines_own(tmp_path: Path):
    """A Python on the PATH is not used where Scoreline is installed among the user's packages."""
    python = program(tmp_path / "bin/python3")
    environ = {"PATH": str(python.parent)}
    assert submitters_interpreter(environ, own="own", prefix=str(tmp_path)) == "own"
