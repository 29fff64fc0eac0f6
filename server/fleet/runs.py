# SPDX-License-Identifier: Apache-2.0
"""When each version of a service ran, on which hosts, and which run replaced which.

A series knows its first and last window only. A version that came back after another (a rollback) is two runs: where the first ended
and the second began is found while it happens (server.fleet.returns) and kept.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from server.query.timerange import SECOND_NS
from server.store.protocol import SeriesInfo

WINDOW_NS = 10 * SECOND_NS
"""Of an agent: a series lasts from the start of its first window to the end of its last."""


@dataclass(frozen=True, slots=True)
class Return:
    """A version that came back."""

    service: str
    version: str
    ended_unix_ns: int
    """End of its run before."""
    first_by_host: Mapping[str, int]
    """When it came back, unix nanoseconds; never empty."""

    @property
    def first_unix_ns(self) -> int:
        """When it came back on the first host."""
        return min(self.first_by_host.values())


@dataclass(frozen=True, slots=True)
class Run:
    """One version: when it ran, on which hosts from when until when."""

    version: str
    first: int
    end: int
    first_by_host: Mapping[str, int]
    last_by_host: Mapping[str, int]
    is_return: bool = False


def runs_of(infos: Iterable[SeriesInfo], returns: Sequence[Return]) -> list[Run]:
    """All runs of the versions of one service, by their first window. Series without a version are none."""
    by_version: dict[str, list[SeriesInfo]] = {}
    for info in infos:
        if info.labels.get("version"):
            by_version.setdefault(info.labels["version"], []).append(info)
    runs = []
    for version, group in by_version.items():
        came_back = sorted((back for back in returns if back.version == version), key=lambda back: back.first_unix_ns)
        runs += _split(_whole(version, group), came_back)
    return sorted(runs, key=lambda run: (run.first, run.version))


def changes(runs: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Each run with the one it replaced: of those that came before, the one that ran last until then, of several the newest.

    One pass: `before` holds who can still be chosen, the newest last, each ending earlier than the ones before it.
    """
    found: list[tuple[Run, Run]] = []
    before: list[Run] = []
    for at, run in enumerate(runs):
        while len(before) > 1 and before[-1].end < run.first:
            before.pop()
        # What went on elsewhere meanwhile is the version itself when a canary is taken back: there are few of these.
        others = [one for one in runs[:at] if one.version != run.version] if run.is_return else before
        if others and runs[0].first < run.first:
            found.append((run, max(others, key=lambda one: (min(one.end, run.first), one.first)) if run.is_return else before[-1]))
        while before and before[-1].end <= run.end:
            before.pop()
        before.append(run)
    return found


def _whole(version: str, group: Sequence[SeriesInfo]) -> Run:
    first_by_host: dict[str, int] = {}
    last_by_host: dict[str, int] = {}
    for info in group:
        host = info.labels.get("host", "")
        first_by_host[host] = min(info.first_unix_ns, first_by_host.get(host, info.first_unix_ns))
        last_by_host[host] = max(info.last_unix_ns, last_by_host.get(host, 0))
    return Run(version, min(first_by_host.values()), max(last_by_host.values()) + WINDOW_NS, first_by_host, last_by_host)


def _split(run: Run, came_back: Sequence[Return]) -> list[Run]:
    """Cut a run where the version had gone."""
    parts, rest = [], run
    for back in came_back:
        if not rest.first < back.ended_unix_ns <= back.first_unix_ns < rest.end:
            continue  # its series are gone, or it was found twice
        last = {host: min(at, back.ended_unix_ns - WINDOW_NS) for host, at in rest.last_by_host.items()}
        firsts = {host: at for host, at in rest.first_by_host.items() if at < back.ended_unix_ns}
        parts.append(Run(run.version, rest.first, back.ended_unix_ns, firsts, {h: last[h] for h in firsts}, rest.is_return))
        still = {host: at for host, at in rest.last_by_host.items() if at + WINDOW_NS > back.first_unix_ns}
        began = {host: back.first_by_host.get(host, max(back.first_unix_ns, rest.first_by_host[host])) for host in still}
        rest = Run(run.version, back.first_unix_ns, rest.end, began, still, is_return=True)
    return [*parts, rest]
