"""Special-purpose addresses, as `deny_private` refuses them."""

from ipaddress import ip_address

import pytest

from executor.targets.addresses import AddressPolicy
from executor.targets.special_addresses import is_special

SPECIAL = [
    "0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.127.255.255",
    "127.0.0.1", "127.255.255.255", "169.254.0.0", "169.254.169.254", "172.16.0.0", "172.31.255.255",
    "192.0.0.0", "192.0.0.9", "192.0.0.255", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1",
    "192.168.0.1", "192.175.48.1", "198.18.0.0", "198.19.255.255", "198.51.100.1", "203.0.113.255",
    "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::2", "::127.0.0.1",
    "::93.184.216.34", "::ffff:127.0.0.1", "::ffff:192.0.0.8", "::ffff:0:10.0.0.1",
    "64:ff9b::127.0.0.1", "64:ff9b::169.254.169.254", "64:ff9b:0:1::1", "64:ff9b:1::1",
    "64:ff9b:1:ffff::93.184.216.34", "100::1", "2001::1", "2001:0:7f00:1::", "2001:2::1", "2001:10::1",
    "2001:20::1", "2001:1ff:ffff::", "2001:db8::1", "2002:7f00:1::", "2002:a00:1::",
    "2002:5db8:d822::1", "2620:4f:8000::1", "3fff::1", "5f00::1", "fc00::1", "fd00::1", "fe80::1",
    "febf::1", "fec0::1", "feff::1", "ff02::1", "ff0e::1",
]  # fmt: skip


PUBLIC = [
    "1.1.1.1", "9.255.255.255", "11.0.0.0", "93.184.216.34", "100.63.255.255", "100.128.0.0",
    "126.255.255.255", "128.0.0.1", "169.253.255.255", "172.15.255.255", "172.32.0.0",
    "191.255.255.255", "192.0.1.1", "192.167.255.255", "198.17.255.255", "198.20.0.0",
    "223.255.255.255", "::ffff:93.184.216.34", "64:ff9b::93.184.216.34", "2001:200::1",
    "2606:2800:220:1:248:1893:25c8:1946", "2a00:1450:4001:80b::200e",
]  # fmt: skip


@pytest.mark.parametrize("address", SPECIAL)
def test_special_addresses_are_refused_by_deny_private(address):
    """Every special-purpose range, at its edges and in IPv6 forms of IPv4, unless `allow` names it."""
    assert is_special(ip_address(address))
    assert not AddressPolicy.of(None, deny_private=True).permits("h", address)
    assert AddressPolicy.of((address,), deny_private=True).permits("h", address)


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_permitted_by_deny_private(address):
    """The neighbours of the special ranges, and public addresses behind NAT64."""
    assert not is_special(ip_address(address))
    assert AddressPolicy.of(None, deny_private=True).permits("h", address)
