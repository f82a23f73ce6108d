"""Addresses that are not of the public internet, by the IANA registries of special-purpose addresses.

The tables are our own: `ipaddress.is_global` changes with the version of Python, and treats some of these
as global. An IPv6 address that embeds an IPv4 address for a gateway is classified by that one.
"""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

Address = IPv4Address | IPv6Address

SPECIAL_V4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared by carriers
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local, and the metadata of clouds
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # IETF protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
GLOBAL_V6 = IPv6Network("2000::/3")
"""The only global unicast addresses: all others are special, such as fc00::/7, fe80::/10 and fec0::/10."""
SPECIAL_V6 = tuple(
    map(
        IPv6Network,
        (
            "2001::/23",  # IETF protocol assignments: Teredo, benchmarks, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
NAT64 = IPv6Network("64:ff9b::/96")
"""The well-known prefix only: networks that lack IPv4 reach public servers by it."""


def is_special(address: Address) -> bool:
    """Whether an address is not of the public internet."""
    if isinstance(address, IPv4Address):
        return any(address in network for network in SPECIAL_V4)
    if inside := embedded(address):
        return is_special(inside)
    return address not in GLOBAL_V6 or any(address in network for network in SPECIAL_V6)


def embedded(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that a connection to a mapped or NAT64 address leads to."""
    if address.ipv4_mapped:
        return address.ipv4_mapped
    return IPv4Address(int(address) & 0xFFFFFFFF) if address in NAT64 else None
