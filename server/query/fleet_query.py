# SPDX-License-Identifier: Apache-2.0
"""The fleet at a glance: services by CPU, labels and their values, agents and what they cost."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from server.query.complaint import QueryError, did_you_mean
from server.query.kinds import DEFAULT_KIND, OVERHEAD_KIND, width_column
from server.query.profile_query import FIXED_LABELS, ProfileQuery
from server.query.quality import Losses, add_accounts, is_silent, share, silent_hosts
from server.query.selector import Selector
from server.query.slots import Slots
from server.query.timerange import SECOND_NS, TimeRange
from server.query.whole_stacks import whole_shares
from server.store.protocol import AccountSlot, AgentInfo, Selection, SeriesInfo, ServiceInfo, Store, Timeline

Values = npt.NDArray[np.uint64]
_DAY_NS = 86_400 * SECOND_NS


@dataclass(frozen=True, slots=True)
class ServiceRow:
    """One service over the range."""

    service: str
    cpu_ns: int
    cores: float
    """On average over the range, from its first data on."""
    cores_now: float
    """In the last slot that is full."""
    share: float
    """Of the CPU time of all services."""
    spark: list[float]
    """Cores per slot."""
    version: str
    """The one that was seen first last; "" when none is known."""
    version_since_unix_ns: int
    versions: int
    hosts: int
    samples: int
    losses: Losses
    """Of the hosts it ran on."""
    whole_share: float | None = None
    """Of its CPU time, with a stack from leaf to root; None when that is too much to work out in a table."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """All services, the largest first."""

    slots: Slots
    services: list[ServiceRow]
    covered_ns: int
    """Length of the slots from the first with data to the last."""
    cores_now: float
    hosts: int
    agents: int
    """Hosts with an agent that reported in the range or in the day before it: a host that was taken away is missed for a day."""
    agents_silent: int
    """Those of them that do not report at its end."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent: what it lost and what it cost in the range. Shares of cost are of one core; None when it did not say."""

    info: AgentInfo
    is_silent: bool
    losses: Losses
    cpu_share: float | None
    bpf_share: float | None
    rss_bytes: int | None
    map_bytes: int | None


def fleet(query: ProfileQuery, slots: Slots) -> Fleet:
    """Answer which services there are and what they used."""
    store, span = query.store, slots.range
    kinds = {kind.name for kind in store.kinds()}
    at = min(query.now_unix_ns(), span.until_unix_ns)
    lately = _agents_of(store, span)
    agents, silent = len({agent.host for agent in lately}), len(silent_hosts(lately, at))
    if DEFAULT_KIND not in kinds:
        return Fleet(slots, [], 0, 0.0, 0, agents, silent)
    timeline = store.timeline(Selection(DEFAULT_KIND, span.from_unix_ns, span.until_unix_ns, None, ("samples", "ns")), slots.step_ns)
    infos = {info.series_id: info for info in store.series(DEFAULT_KIND, span.from_unix_ns, span.until_unix_ns)}
    series = [infos[i] for i in timeline.series_ids.tolist()]
    covered_ns = _covered_ns(timeline, slots)
    catalog = {info.service: info for info in store.catalog(span.from_unix_ns, span.until_unix_ns)}
    by_host = _by_host(store.accounts(DEFAULT_KIND, span.from_unix_ns, span.until_unix_ns))
    rows = [
        _service_row(_Rows(service, members, timeline, slots, covered_ns, _full_slot(timeline)), series, catalog.get(service), by_host)
        for service, members in _grouped(series, "service").items()
    ]
    total_ns = sum(row.cpu_ns for row in rows)
    whole = whole_shares(store, span)
    rows = [
        replace(row, share=share(row.cpu_ns, total_ns), whole_share=whole.get(row.service))
        for row in sorted(rows, key=lambda row: (-row.cpu_ns, row.service))
    ]
    cores_now = sum(row.cores_now for row in rows)
    return Fleet(slots, rows, covered_ns, cores_now, len({_host(info) for info in series}), agents, silent)


def label_names(query: ProfileQuery, span: TimeRange) -> list[str]:
    """Names of the labels that series in the range have."""
    store = query.store
    found = {
        label for kind in store.kinds() for info in store.series(kind.name, span.from_unix_ns, span.until_unix_ns) for label in info.labels
    }
    return sorted(found)


def label_values(query: ProfileQuery, name: str, selector: Selector, span: TimeRange) -> list[tuple[str, int]]:
    """Values of a label among the series of a selector, with what each has of the kind's width column; the largest first."""
    chosen = query.choose(selector, span)
    known = {label for info in chosen.series for label in info.labels}.union(FIXED_LABELS)
    if name not in known:
        raise QueryError(f"no series here has a label {name!r}", hint=did_you_mean(name, known))
    if not chosen.series:
        return []
    column = width_column(chosen.kind)
    timeline = query.store.timeline(chosen.selection(span, (column.name,)), span.length_ns)
    infos = {info.series_id: info for info in chosen.series}
    sums: dict[str, int] = {}
    for i, value in zip(timeline.series_ids.tolist(), timeline.columns[column.name].sum(axis=1).tolist(), strict=True):
        label = infos[i].labels.get(name, "")
        sums[label] = sums.get(label, 0) + value
    return sorted(sums.items(), key=lambda item: (-item[1], item[0]))


def agents(query: ProfileQuery, span: TimeRange) -> list[AgentRow]:
    """Answer which agents there were in the range or a day before, by host."""
    store = query.store
    at = min(query.now_unix_ns(), span.until_unix_ns)
    by_agent: dict[bytes, list[AccountSlot]] = {}
    for account in store.accounts(DEFAULT_KIND, span.from_unix_ns, span.until_unix_ns):
        by_agent.setdefault(account.agent_id, []).append(account)
    costs = _costs(query, span)
    return [
        AgentRow(info, is_silent(info, at), add_accounts(by_agent.get(info.agent_id, ())), *costs.get(info.host, _NO_COST))
        for info in _agents_of(store, span)
    ]


def _agents_of(store: Store, span: TimeRange) -> list[AgentInfo]:
    """Hosts come and go: one that fell silent is told of for a day, and where it was there."""
    return [agent for agent in store.agents() if agent.last_window_end_unix_ns >= span.from_unix_ns - _DAY_NS]


_Cost = tuple[float | None, float | None, int | None, int | None]
_NO_COST: _Cost = (None, None, None, None)


def _costs(query: ProfileQuery, span: TimeRange) -> dict[str, _Cost]:
    """Give what agents say of themselves, by host."""
    store = query.store
    if OVERHEAD_KIND not in {kind.name for kind in store.kinds()}:
        return {}
    slots = Slots(span, max(span.length_ns // 100, 10**10))
    timeline = store.timeline(Selection(OVERHEAD_KIND, span.from_unix_ns, span.until_unix_ns), slots.step_ns)
    infos = {info.series_id: info for info in store.series(OVERHEAD_KIND, span.from_unix_ns, span.until_unix_ns)}
    costs: dict[str, _Cost] = {}
    for host, members in _grouped([infos[i] for i in timeline.series_ids.tolist()], "host").items():
        seen_ns = _covered_ns(timeline, slots, members)
        sums = [int(timeline.columns[name][members].sum()) if name in timeline.columns else None for name in ("cpu_ns", "bpf_ns")]
        peaks = [int(timeline.columns[name][members].max()) if name in timeline.columns else None for name in ("rss_bytes", "map_bytes")]
        cpu_share, bpf_share = (None if value is None else share(value, seen_ns) for value in sums)
        costs[host] = (cpu_share, bpf_share, peaks[0], peaks[1])
    return costs


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of a timeline that belong to one service."""

    service: str
    members: npt.NDArray[np.intp]
    timeline: Timeline
    slots: Slots
    covered_ns: int
    full: int
    """The last slot that is full."""


def _service_row(rows: _Rows, series: list[SeriesInfo], known: ServiceInfo | None, by_host: Mapping[str, list[AccountSlot]]) -> ServiceRow:
    per_slot = rows.timeline.columns["ns"][rows.members].sum(axis=0)
    spark = [share(value, length) for value, length in zip(per_slot.tolist(), rows.slots.lengths_ns(), strict=True)]
    cpu_ns = int(per_slot.sum())
    hosts = {_host(series[i]) for i in rows.members.tolist()}
    versions = [version for version in known.versions if version.version] if known else []
    return ServiceRow(
        service=rows.service,
        cpu_ns=cpu_ns,
        cores=share(cpu_ns, rows.covered_ns),
        cores_now=spark[rows.full],
        share=0.0,
        spark=spark,
        version=versions[-1].version if versions else "",
        version_since_unix_ns=versions[-1].first_unix_ns if versions else 0,
        versions=len(versions),
        hosts=len(hosts),
        samples=int(rows.timeline.columns["samples"][rows.members].sum()),
        losses=add_accounts(account for host in sorted(hosts) for account in by_host.get(host, ())),
    )


def _full_slot(timeline: Timeline) -> int:
    """Give the slot before the last one with data: into the last one windows may still come."""
    seen = np.flatnonzero(timeline.has_data.any(axis=0))
    return int(seen[-2:][0]) if seen.size else 0


def _covered_ns(timeline: Timeline, slots: Slots, members: npt.NDArray[np.intp] | None = None) -> int:
    has_data = timeline.has_data if members is None else timeline.has_data[members]
    seen = np.flatnonzero(has_data.any(axis=0))
    return sum(slots.lengths_ns()[int(seen[0]) : int(seen[-1]) + 1]) if seen.size else 0


def _grouped(series: list[SeriesInfo], label: str) -> dict[str, npt.NDArray[np.intp]]:
    """Give the places in `series` by value of a label."""
    groups: dict[str, list[int]] = {}
    for at, info in enumerate(series):
        groups.setdefault(info.labels.get(label, ""), []).append(at)
    return {value: np.array(places, np.intp) for value, places in groups.items()}


def _by_host(accounts: list[AccountSlot]) -> dict[str, list[AccountSlot]]:
    hosts: dict[str, list[AccountSlot]] = {}
    for account in accounts:
        hosts.setdefault(account.host, []).append(account)
    return hosts


def _host(info: SeriesInfo) -> str:
    return info.labels.get("host", "")
