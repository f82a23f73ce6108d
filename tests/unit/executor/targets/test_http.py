"""HTTP targets: their lanes."""

from executor.contract import ExecutionEnvironment
from executor.targets.http import HTTP


def test_an_http_target_has_the_lane_of_its_host():
    """Servers outside the table are identified by host and port."""
    assert (
        HTTP.lane({"url": "https://example.org:8443/x"}, ExecutionEnvironment()) == "http:example.org:8443"
    )
    assert HTTP.tokens({}) == 0
