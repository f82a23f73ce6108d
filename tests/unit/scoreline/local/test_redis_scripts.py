"""Scripts that are loaded into Redis for executors: those of every package that they call."""

from pathlib import Path

from scoreline.local.redis_scripts import PACKAGES, executor_scripts

ROOT = Path(__file__).parents[4]


def test_every_script_of_a_package_of_executors_is_read():
    """A coordinator loads them: executors may lack the right to."""
    files = {path for package in PACKAGES for path in (ROOT / package).rglob("*.lua")}
    texts = {script.source for script in executor_scripts()}
    assert {path.parts[len(ROOT.parts)] for path in files} == set(PACKAGES)
    assert {path.read_text() for path in files} == texts
