# SPDX-License-Identifier: Apache-2.0
"""Who talks to whom: connections with a service's name at both ends, where both ends are known here.

A row `out 10.0.0.7:5432` of one host belongs to the service that has a row `in :5432` on the host with that address. Hosts say their
addresses as flags (ADDRESS_FLAG); a loopback address is the host's own. Where two services listen on one port of a host, or nobody is
known to, the address is all that is said: a wrong name is worse than none.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from server.profile.calltree import Indices
from server.query.chosen import Chosen
from server.query.merge import Meter
from server.query.profile_query import ProfileQuery
from server.query.row_filter import text_of, used_numbers
from server.query.selector import Selector
from server.query.timerange import TimeRange
from server.store.protocol import AgentInfo, ServiceDictionary

ADDRESS_FLAG = "address:"
KIND = "tcp"
COLUMNS = ("connects", "accepts", "bytes_out", "bytes_in", "segments_out", "retransmits", "refused", "resets")
_IN, _OUT = "in :", "out "


@dataclass(frozen=True, slots=True)
class End:
    """One end of connections: what a service on a host has with one object."""

    service: str
    host: str
    object: str
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Edge:
    """Connections of one service to another, or to an address whose service is not known ("")."""

    caller: str
    service: str
    host: str
    """Of the service called; "" when it is not known, or there are several."""
    address: str
    values: Mapping[str, int]


class Directory:
    """Who listens where."""

    def __init__(self, ends: Iterable[End], agents: Iterable[AgentInfo]) -> None:
        self._hosts: dict[str, set[str]] = {}
        for agent in agents:
            for flag in agent.flags:
                if flag.startswith(ADDRESS_FLAG):
                    self._hosts.setdefault(flag.removeprefix(ADDRESS_FLAG), set()).add(agent.host)
        self._listeners: dict[tuple[str, str], set[str]] = {}
        for end in ends:
            if end.object.startswith(_IN):
                self._listeners.setdefault((end.host, end.object.removeprefix(_IN)), set()).add(end.service)

    def who(self, host: str, target: str) -> tuple[str, str] | None:
        """Give service and host behind ADDRESS:PORT as `host` sees it; None when it is not known for certain."""
        address, _, port = target.rpartition(":")
        found = {host} if _is_loopback(address.strip("[]")) else self._hosts.get(address.strip("[]"), set())
        named = {(service, one) for one in found for service in self._listeners.get((one, port), ())}
        return next(iter(named)) if len(named) == 1 else None


def edges(query: ProfileQuery, span: TimeRange) -> list[Edge]:
    """Answer all connections that were opened, one for each caller and what it called."""
    ends = list(_ends(query, span))
    directory = Directory(ends, query.store.agents())
    sums: dict[tuple[str, str, str], dict[str, int]] = {}
    hosts: dict[tuple[str, str, str], set[str]] = {}
    for end in ends:
        if not end.object.startswith(_OUT):
            continue
        target = end.object.removeprefix(_OUT)
        found = directory.who(end.host, target)
        key = (end.service, found[0], "") if found else (end.service, "", target)
        of_key = sums.setdefault(key, {})
        for name, value in end.values.items():
            of_key[name] = of_key.get(name, 0) + value
        hosts.setdefault(key, set()).add(found[1] if found else "")
    made = [Edge(key[0], key[1], next(iter(hosts[key])) if len(hosts[key]) == 1 else "", key[2], values) for key, values in sums.items()]
    return sorted(made, key=lambda edge: (-_bytes(edge), edge.caller, edge.service, edge.address))


def names_of_objects(query: ProfileQuery, selector: Selector, span: TimeRange) -> dict[str, tuple[str, str]]:
    """Give service and host behind each object of a selector that means the same service on all its hosts; "" for several hosts."""
    ends = list(_ends(query, span))
    directory, chosen = Directory(ends, query.store.agents()), query.choose(selector, span)
    wanted = {(series.service, series.labels.get("host", "")) for series in chosen.series}
    found: dict[str, set[tuple[str, str] | None]] = {}
    for end in ends:
        if (end.service, end.host) in wanted and end.object.startswith(_OUT):
            found.setdefault(end.object, set()).add(directory.who(end.host, end.object.removeprefix(_OUT)))
    return {name: one for name, some in found.items() if (one := _common(some)) is not None}


def _common(found: set[tuple[str, str] | None]) -> tuple[str, str] | None:
    known = {one for one in found if one is not None}
    services, hosts = {service for service, _ in known}, {host for _, host in known}
    if len(services) != 1 or None in found:
        return None
    return next(iter(services)), next(iter(hosts)) if len(hosts) == 1 else ""


def _ends(query: ProfileQuery, span: TimeRange) -> Iterator[End]:
    """Rows of all services, added up by host and object."""
    if KIND not in {kind.name for kind in query.store.kinds()}:
        return
    chosen, meter = query.choose(Selector(KIND), span), Meter()
    hosts = sorted(chosen.hosts)
    host_of = _host_of_series(chosen, hosts)
    found: dict[str, _Sums] = {}
    for piece in query.store.select(chosen.selection(span, COLUMNS)):
        meter.count(piece)
        if piece.service not in found:
            found[piece.service] = _Sums(query.store.dictionary(piece.service), len(hosts))
        found[piece.service].add(np.broadcast_to(host_of[piece.series], piece.keys.shape), piece.keys, dict(piece.columns))
    for service, sums in found.items():
        yield from sums.ends(service, hosts)


class _Sums:
    """What one service has: arrays of shape (hosts, objects), flat."""

    def __init__(self, dictionary: ServiceDictionary, hosts: int) -> None:
        numbers = dictionary.key_objects
        used = used_numbers(numbers, len(dictionary.strings))
        self._objects = [text_of(dictionary.strings[n]) for n in used]
        self._object_of_key: Indices = np.searchsorted(used, numbers)
        self._values = {name: np.zeros(hosts * len(used), np.uint64) for name in COLUMNS}
        self._seen = np.zeros(hosts * len(used), np.bool_)

    def add(self, hosts: Indices, keys: Indices, columns: Mapping[str, np.typing.NDArray[np.unsignedinteger]]) -> None:
        cells = hosts * len(self._objects) + self._object_of_key[keys]
        self._seen[cells] = True
        for name, values in columns.items():
            np.add.at(self._values[name], cells, values.astype(np.uint64))

    def ends(self, service: str, hosts: list[str]) -> Iterator[End]:
        for cell in np.flatnonzero(self._seen).tolist():
            host, number = divmod(cell, len(self._objects))
            yield End(service, hosts[host], self._objects[number], {name: int(values[cell]) for name, values in self._values.items()})


def _host_of_series(chosen: Chosen, hosts: list[str]) -> Indices:
    number = {host: at for at, host in enumerate(hosts)}
    by_series = np.zeros(max((series.series_id for series in chosen.series), default=0) + 1, np.intp)
    for series in chosen.series:
        by_series[series.series_id] = number[series.labels.get("host", "")]
    return by_series


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _bytes(edge: Edge) -> int:
    return edge.values.get("bytes_out", 0) + edge.values.get("bytes_in", 0)
