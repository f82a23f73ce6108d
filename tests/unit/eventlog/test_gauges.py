"""Gauges read registered sources at collection, and report nothing of others."""

from dataclasses import dataclass, field

from opentelemetry.metrics import Observation

from eventlog.gauges import DependencyHealth, GaugeSet
from tests.telemetry import measuring


@dataclass
class Tank:
    level: float | None
    health: DependencyHealth = field(default_factory=DependencyHealth)


TANKS = GaugeSet[Tank]("test.tanks")
TANKS.value("eval_test_level", "Highest level", lambda tank: tank.level)
TANKS.value("eval_test_content", "Content of all", lambda tank: tank.level, combine=sum)
TANKS.gauge("eval_test_dependency", "Health", lambda tank: tank.health.observations())
TANKS.gauge("eval_test_label", "By label", lambda tank: [Observation(tank.level or 0, {"side": "left"})])


def test_a_gauge_reports_the_value_at_collection():
    """A change between two collections is seen by the second."""
    tank = Tank(1)
    with measuring() as measured, TANKS.registered(tank):
        assert measured.look().gauge("eval_test_level") == 1
        tank.level = 3
        assert measured.look().gauge("eval_test_level") == 3
        assert measured.gauge("eval_test_label", "left") == 3


def test_a_gauge_without_sources_reports_nothing():
    """The series of a stopped process ends; a value of None is no series either."""
    with measuring() as measured:
        with TANKS.registered(Tank(None)):
            assert measured.look().gauge("eval_test_level") is None
        assert measured.look().gauge("eval_test_content") is None
        assert measured.gauge("eval_test_label", "left") is None


def test_values_of_several_sources_are_combined_into_one_series():
    """Two observations without labels would be one series with the value of the last."""
    with measuring() as measured, TANKS.registered(Tank(1)), TANKS.registered(Tank(4)):
        measured.look()
        assert measured.gauge("eval_test_level") == 4
        assert measured.gauge("eval_test_content") == 5


def test_sources_are_distinguished_by_identity():
    """Unregistering one of two equal sources keeps the other; an unknown one is ignored."""
    one, other = Tank(2), Tank(2)
    with measuring() as measured, TANKS.registered(one):
        with TANKS.registered(other):
            pass
        TANKS.unregister(other)
        assert measured.look().gauge("eval_test_content") == 2


def test_dependencies_are_reported_from_their_first_request_on():
    """A server that no request was sent to has no series."""
    tank = Tank(0)
    tank.health.reached("redis", "postgres")
    tank.health.missed("redis")
    with measuring() as measured, TANKS.registered(tank):
        measured.look()
        assert measured.gauge("eval_test_dependency", "redis") == 0
        assert measured.gauge("eval_test_dependency", "postgres") == 1
        assert measured.gauge("eval_test_dependency", "other") is None
