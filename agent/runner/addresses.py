# SPDX-License-Identifier: Apache-2.0
"""The addresses of this host, so that the server can tell which service stands at the other end of a connection.

Loopback and link-local addresses say nothing to other hosts and are left out.
"""

import ipaddress
from collections.abc import Iterator
from pathlib import Path

MOST_ADDRESSES = 16
"""Told to the server; a host with more has them for containers, and its first ones are its own."""
_MOST_BYTES = 1 << 20
"""Read of a file of the kernel: routers have tables of many MB."""
_REREAD_NS = 60 * 10**9


class HostAddresses:
    """Reads the addresses, and again after a minute: networks come and go while the agent runs."""

    def __init__(self, network: Path = Path("/proc/net")) -> None:
        self._network = network
        self._read_at_ns: int | None = None
        self._addresses: list[str] = []

    def at(self, now_ns: int) -> list[str]:
        """Give the addresses at a monotonic time, in order; none when the kernel does not tell."""
        if self._read_at_ns is None or now_ns - self._read_at_ns >= _REREAD_NS:
            self._read_at_ns = now_ns
            self._addresses = _read(self._network)
        return self._addresses


def _read(network: Path) -> list[str]:
    found: list[ipaddress.IPv4Address | ipaddress.IPv6Address] = [
        *_version_4(_text(network / "fib_trie")),
        *_version_6(_text(network / "if_inet6")),
    ]
    return [str(address) for address in dict.fromkeys(found) if not (address.is_loopback or address.is_link_local)][:MOST_ADDRESSES]


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MOST_BYTES).decode("ascii", "replace")
    except OSError:
        return ""  # A kernel without this family: the host has no such address.


def _version_4(text: str) -> Iterator[ipaddress.IPv4Address]:
    """Leaves of the routing tables, `|-- ADDRESS`, that are followed by `/32 host LOCAL`."""
    address = ""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["|--"] and len(words) == 2:
            address = words[1]
        elif words == ["/32", "host", "LOCAL"] and address:
            try:
                yield ipaddress.IPv4Address(address)
            except ValueError:
                continue


def _version_6(text: str) -> Iterator[ipaddress.IPv6Address]:
    """Lines of if_inet6: 32 hex digits, index, length of the prefix, scope, flags, device."""
    for line in text.splitlines():
        words = line.split()
        try:
            yield ipaddress.IPv6Address(bytes.fromhex(words[0]))
        except (IndexError, ValueError):
            continue
