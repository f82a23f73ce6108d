"""The addresses that an HTTP target may reach; the checked address is the one connected to.

A name is resolved once per request, each of its addresses is checked, and the connection goes to one that
passed, not to what the name resolves to later. Redirects are checked as well.
"""

import asyncio
import socket
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx2

from executor.contract import NoConnection, Permanent
from executor.targets.special_addresses import embedded, is_special

Network = IPv4Network | IPv6Network


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """The permitted hosts and networks, or all."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = ()
    deny_private: bool = False

    @classmethod
    def of(cls, allow: tuple[str, ...] | None, *, deny_private: bool) -> "AddressPolicy":
        """Read a list of host names and networks."""
        entries = [(entry, _network(entry)) for entry in allow or ()]
        hosts = frozenset(entry.lower().rstrip(".") for entry, network in entries if network is None)
        return cls(hosts, tuple(n for _, n in entries if n is not None), deny_private)

    @property
    def is_open(self) -> bool:
        """Whether nothing is forbidden."""
        return not (self.hosts or self.networks or self.deny_private)

    def permits(self, host: str, address: str) -> bool:
        """Whether this address of this host may be connected to; a named network may be private."""
        ip = ip_address(address)
        ways = [ip, embedded(ip)] if isinstance(ip, IPv6Address) else [ip]
        if any(each in network for network in self.networks for each in ways if each):
            return True
        if self.deny_private and is_special(ip):
            return False
        return host.lower().rstrip(".") in self.hosts or not (self.hosts or self.networks)


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Sends requests to addresses that a policy permits."""

    def __init__(self, policy: AddressPolicy, inner: httpx2.AsyncBaseTransport) -> None:
        self._policy, self._inner = policy, inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request to the first permitted address that takes the connection."""
        host = request.url.host
        *others, last = await self._permitted(host, request.url.port)
        for address in others:
            try:
                return await self._inner.handle_async_request(_pinned(request, host, address))
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue
        return await self._inner.handle_async_request(_pinned(request, host, last))

    async def aclose(self) -> None:
        """Close the wrapped transport."""
        await self._inner.aclose()

    async def _permitted(self, host: str, port: int | None) -> list[str]:
        found = await resolve(host, port)
        permitted = [address for address in found if self._policy.permits(host, address)]
        if not permitted:
            raise Permanent("forbidden_address", f"{host} ({', '.join(found)}) is not an allowed address")
        return permitted


async def resolve(host: str, port: int | None) -> list[str]:
    """Find the addresses of a host; raises `NoConnection` where there are none."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise NoConnection(f"{host}: the host name does not resolve ({error})") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def _pinned(request: httpx2.Request, host: str, address: str) -> httpx2.Request:
    """Point a request at an address; the Host header and the certificate check keep the name."""
    return httpx2.Request(
        request.method,
        request.url.copy_with(host=address.partition("%")[0]),
        headers=request.headers,
        stream=request.stream,
        extensions={**request.extensions, "sni_hostname": host},
    )


def _network(entry: str) -> Network | None:
    try:
        return ip_network(entry, strict=False)
    except ValueError:
        return None
