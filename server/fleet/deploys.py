# SPDX-License-Identifier: Apache-2.0
"""Deploys, derived from the versions that series carry: which version came when, on which hosts, in whose place.

The first version that was ever seen of a service is no deploy: it may be as old as the service. A version that comes back after another
(a rollback) is known by its first and last window only, so it is the one deploy it was at first.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from server.query.timerange import SECOND_NS, TimeRange
from server.store.protocol import SeriesInfo, Store

WINDOW_NS = 10 * SECOND_NS
"""Of an agent: a series lasts from the start of its first window to the end of its last."""
LEAST_TOGETHER_NS = 120 * SECOND_NS
"""So long must two versions run side by side to be compared there: before and after differ by more than the version."""
MOST_COMPARED_NS = 3600 * SECOND_NS
_ALL_TIME = (0, 2**62)
_SLACK_NS = 60 * SECOND_NS
"""After a restart of the server the last window of a series is known to a minute."""


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison."""

    version: str
    range: TimeRange


@dataclass(frozen=True, slots=True)
class Comparison:
    """What shows the effect of a deploy best: `before` is the replaced version, `after` the new one."""

    is_canary: bool
    """Both ran in the same minutes, and those are compared."""
    before: Side
    after: Side


@dataclass(frozen=True, slots=True)
class Deploy:
    """One version of a service that came after another."""

    deploy_id: str
    service: str
    version: str
    replaced: str
    first_seen_unix_ns: int
    hosts_done: int
    """Hosts on which it has been seen."""
    hosts_total: int
    """Those, and the ones that still ran the replaced version when it came."""
    annotation: str | None
    comparison: Comparison


@dataclass(frozen=True, slots=True)
class _Run:
    """One version: when it ran, on which hosts until when."""

    version: str
    first: int
    end: int
    last_by_host: Mapping[str, int]


def deploys(store: Store, span: TimeRange, service: str = "") -> list[Deploy]:
    """Deploys first seen in the range, the latest first; of one service, or of all."""
    by_service: dict[str, list[SeriesInfo]] = {}
    for kind in store.kinds():
        for info in store.series(kind.name, *_ALL_TIME):
            if info.labels.get("version") and service in {"", info.service}:
                by_service.setdefault(info.service, []).append(info)
    notes = {(note.service, note.version): note.text for note in store.deploy_notes()}
    found = [
        _deploy(name, run, before, notes.get((name, run.version)))
        for name, infos in by_service.items()
        for run, before in _changes(_runs(infos))
        if span.from_unix_ns <= run.first < span.until_unix_ns
    ]
    return sorted(found, key=lambda deploy: (-deploy.first_seen_unix_ns, deploy.service, deploy.version))


def _runs(infos: Iterable[SeriesInfo]) -> list[_Run]:
    """All versions, by their first window."""
    by_version: dict[str, list[SeriesInfo]] = {}
    for info in infos:
        by_version.setdefault(info.labels["version"], []).append(info)
    runs = []
    for version, group in by_version.items():
        last_by_host: dict[str, int] = {}
        for info in group:
            host = info.labels.get("host", "")
            last_by_host[host] = max(info.last_unix_ns, last_by_host.get(host, 0))
        first, last = min(info.first_unix_ns for info in group), max(last_by_host.values())
        runs.append(_Run(version, first, last + WINDOW_NS, last_by_host))
    return sorted(runs, key=lambda run: (run.first, run.version))


def _changes(runs: Sequence[_Run]) -> list[tuple[_Run, _Run]]:
    """Each version with the one it replaced: of those that came before, the one that ran last until then, of several the newest.

    One pass: `before` holds who can still be chosen, the newest last, each ending earlier than the ones before it.
    """
    changes: list[tuple[_Run, _Run]] = []
    before: list[_Run] = []
    for run in runs:
        while len(before) > 1 and before[-1].end < run.first:
            before.pop()
        if before and runs[0].first < run.first:
            changes.append((run, before[-1]))
        while before and before[-1].end <= run.end:
            before.pop()
        before.append(run)
    return changes


def _deploy(service: str, run: _Run, before: _Run, annotation: str | None) -> Deploy:
    waiting = {host for host, last in before.last_by_host.items() if last + _SLACK_NS >= run.first}
    identity = hashlib.blake2b(json.dumps([service, run.version]).encode(), digest_size=8).hexdigest()
    return Deploy(
        deploy_id=identity,
        service=service,
        version=run.version,
        replaced=before.version,
        first_seen_unix_ns=run.first,
        hosts_done=len(run.last_by_host),
        hosts_total=len(waiting | run.last_by_host.keys()),
        annotation=annotation,
        comparison=_comparison(run, before),
    )


def _comparison(run: _Run, before: _Run) -> Comparison:
    """The end of the time both ran, at most an hour; else as long after the change as before it, at most an hour of each."""
    together = min(run.end, before.end)
    if together - run.first >= LEAST_TOGETHER_NS:
        both = TimeRange(max(run.first, together - MOST_COMPARED_NS), together)
        return Comparison(True, Side(before.version, both), Side(run.version, both))
    length_ns = min(MOST_COMPARED_NS, run.end - run.first)
    end = min(before.end, run.first)
    return Comparison(
        False,
        Side(before.version, TimeRange(max(0, end - length_ns), end)),
        Side(run.version, TimeRange(run.first, run.first + length_ns)),
    )
