"""The formats of OpenAI's API."""

import pytest

from scoreline.provider_sim.openai_chat import duration


@pytest.mark.parametrize(
    ("seconds", "written"), [(0.02, "20ms"), (1.5, "1.5s"), (360, "6m0s"), (3_600, "1h0m0s"), (0, "0ms")]
)
def test_durations_are_written_as_openai_writes_them(seconds, written):
    """Short durations are in milliseconds."""
    assert duration(seconds) == written
