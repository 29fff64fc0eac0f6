# SPDX-License-Identifier: Apache-2.0
"""Finds versions that came back after another: on a host, a gap in which that other one ran.

Asked every minute, over the last hours alone and only of services of which a version was seen again after a newer one had come to a
host. What it finds is kept (server.fleet.kept), because series themselves do not tell.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from server.fleet.runs import Return
from server.query.timerange import SECOND_NS, TimeRange
from server.store.protocol import Selection, SeriesInfo, Store

GAP_NS = 300 * SECOND_NS
"""A version that was not seen on a host for so long had gone from it, when another ran there."""
SAME_NS = 2 * 3600 * SECOND_NS
"""Hosts that follow within it belong to the same coming back."""
_STEP_NS = 30 * SECOND_NS

_Present = npt.NDArray[np.bool_]


def find_returns(store: Store, span: TimeRange, known: dict[str, list[Return]]) -> list[Return]:
    """Give what came back in the range and is not yet known so, one for each version at most; known ones with the hosts that followed."""
    found: list[Return] = []
    for service, infos in _suspects(store, span).items():
        timeline = store.timeline(
            Selection("cpu", span.from_unix_ns, span.until_unix_ns, frozenset(info.series_id for info in infos), ("samples",)), _STEP_NS
        )
        rows = {series_id: timeline.has_data[at] for at, series_id in enumerate(timeline.series_ids.tolist())}
        seen = [
            _Seen(info.labels["version"], info.labels.get("host", ""), rows[info.series_id]) for info in infos if info.series_id in rows
        ]
        for version in sorted({one.version for one in seen}):
            back = _return_of(service, version, seen, span.from_unix_ns)
            if back is not None:
                found += _news(back, [one for one in known.get(service, ()) if one.version == version])
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """Where a version ran on a host: by step."""

    version: str
    host: str
    present: _Present


def _suspects(store: Store, span: TimeRange) -> dict[str, list[SeriesInfo]]:
    """Series of services in which a version was seen on a host after another had come there later than it."""
    by_service: dict[str, list[SeriesInfo]] = {}
    for info in store.series("cpu", span.from_unix_ns, span.until_unix_ns):
        if info.labels.get("version"):
            by_service.setdefault(info.service, []).append(info)
    return {service: infos for service, infos in by_service.items() if _is_suspect(infos)}


def _is_suspect(infos: Sequence[SeriesInfo]) -> bool:
    by_host: dict[str, list[SeriesInfo]] = {}
    for info in infos:
        by_host.setdefault(info.labels.get("host", ""), []).append(info)
    for group in by_host.values():
        newest = max(group, key=lambda info: info.first_unix_ns)
        if any(one.first_unix_ns < newest.first_unix_ns < one.last_unix_ns for one in group):
            return True
    return False


def _return_of(service: str, version: str, seen: Sequence[_Seen], start_unix_ns: int) -> Return | None:
    """The latest coming back of a version: hosts that are no further apart than SAME_NS."""
    first_by_host: dict[str, int] = {}
    for one in seen:
        if one.version == version:
            others = [other.present for other in seen if other.host == one.host and other.version != version]
            at = _came_back(one.present, np.any(others, axis=0)) if others else None
            if at is not None:
                first_by_host[one.host] = start_unix_ns + at * _STEP_NS
    if not first_by_host:
        return None
    latest = max(first_by_host.values())
    hosts = {host: at for host, at in sorted(first_by_host.items()) if latest - at <= SAME_NS}
    first = min(hosts.values())
    anywhere = np.any([one.present for one in seen if one.version == version], axis=0)
    before = np.flatnonzero(anywhere[: (first - start_unix_ns) // _STEP_NS])
    if not before.size:
        return None
    ended = start_unix_ns + (int(before[-1]) + 1) * _STEP_NS
    return Return(service, version, min(ended, first), hosts)


def _came_back(present: _Present, other: _Present) -> int | None:
    """The step at which the last gap ended that was long enough and saw the other; None of none."""
    at = np.flatnonzero(present)
    gaps = np.flatnonzero(np.diff(at) > GAP_NS // _STEP_NS)
    for gap in gaps[::-1].tolist():
        if other[at[gap] + 1 : at[gap + 1]].any():
            return int(at[gap + 1])
    return None


def _news(back: Return, known: Sequence[Return]) -> list[Return]:
    """Nothing when all of it is known; the known one with more hosts when they follow it."""
    for one in known:
        if abs(back.first_unix_ns - one.first_unix_ns) <= SAME_NS:
            more = {host: at for host, at in back.first_by_host.items() if host not in one.first_by_host and at >= one.first_unix_ns}
            return [replace(one, first_by_host={**one.first_by_host, **more})] if more else []
    return [back]
