"""Addresses that a name resolves to, and the policy of those that are permitted."""

import pytest

from executor.targets.addresses import AddressPolicy, resolve


@pytest.mark.parametrize(
    ("allow", "host", "address", "permitted"),
    [
        (None, "h", "10.0.0.1", True),
        (("api.test",), "API.test.", "93.184.216.34", True),
        (("api.test",), "other.test", "93.184.216.34", False),
        (("10.0.0.0/8",), "h", "::ffff:10.1.2.3", True),
        (("10.0.0.0/8",), "h", "11.0.0.1", False),
    ],
)
def test_allow_permits_hosts_and_networks(allow, host, address, permitted):
    """Without it all are permitted; a network covers IPv6 forms of its addresses."""
    assert AddressPolicy.of(allow, deny_private=False).permits(host, address) is permitted


async def test_a_name_is_resolved_to_addresses():
    """Each is returned once."""
    assert "127.0.0.1" in await resolve("localhost", 80)
