"""Seeded draws of faults and latencies."""

import pytest

from scoreline.provider_sim.faults import draw_fault, draw_latency, uniform
from scoreline.provider_sim.settings import FaultSettings, LatencySettings


def test_faults_come_in_the_configured_shares():
    """Each kind occurs only where it can happen."""
    faults = FaultSettings(overloaded=0.1, reset_midway=0.1, html=0.1, stream_error=0.2)
    drawn = [draw_fault(faults, streamed=False, fortune=uniform(i)) for i in range(3_000)]
    assert 230 < drawn.count("html") < 370
    assert "stream_error" not in drawn
    assert 2_000 < drawn.count(None) < 2_200
    streamed = [draw_fault(faults, streamed=True, fortune=uniform(i)) for i in range(3_000)]
    assert "html" not in streamed
    assert 520 < streamed.count("stream_error") < 680


def test_latency_has_the_configured_median_and_p95():
    """It is lognormal between them; a single number is constant."""
    drawn = sorted(draw_latency(LatencySettings(1.0, 4.0), uniform(i)) for i in range(4_000))
    assert drawn[2_000] == pytest.approx(1.0, rel=0.1)
    assert drawn[3_800] == pytest.approx(4.0, rel=0.15)
    assert {draw_latency(LatencySettings(0.5), uniform(i)) for i in range(9)} == {0.5}
