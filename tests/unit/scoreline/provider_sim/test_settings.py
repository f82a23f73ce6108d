"""Settings of the simulator, changed by their names."""

import pytest

from scoreline.provider_sim.settings import InvalidSimulatorSettings, SimulatorSettings, changed, flat


def test_settings_change_by_name_all_or_none():
    """An unknown name or a value out of range changes nothing; keys are not shown."""
    settings = changed(SimulatorSettings(), {"rpm": 5, "mode": "echo", "keys": ["secret-1"]})
    assert (settings.limits.rpm, settings.answers.mode) == (5, "echo")
    assert flat(settings)["keys"] == 1
    assert "secret-1" not in repr(settings)
    for wrong in ({"rmp": 1}, {"overloaded": 2}, {"mode": "shout"}, {"rpm": -1}, {"keys": ["secret-2", 3]}):
        with pytest.raises(InvalidSimulatorSettings) as caught:
            changed(settings, wrong)
        assert "secret" not in str(caught.value)
