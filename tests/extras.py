"""Packages that a plain installation does not have: found at collection, imported only by tests that run.

An SDK takes seconds to import, and every test process collects every file.
"""

from importlib.util import find_spec

import pytest


def require(package: str) -> None:
    """Skip the tests of the calling module unless a package is installed."""
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed", allow_module_level=True)
