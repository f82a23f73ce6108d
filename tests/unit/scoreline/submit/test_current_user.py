"""The user in whose name a command acts."""

import pytest

from scoreline.submit.current_user import current_user


def test_a_user_without_a_name_is_an_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers run with user ids that no table has."""
    assert current_user() != ""

    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr("scoreline.submit.current_user.getuser", unknown)
    assert current_user() == "operator"
