# SPDX-License-Identifier: Apache-2.0
"""Who is there: series, services and their versions, from the cached registry alone."""

from server.store.protocol import SeriesInfo, ServiceInfo, VersionInfo
from server.store.registry import Registry

_SLACK_NS = 60 * 10**9
"""After a restart the last window of a series is known to a minute."""


def series(registry: Registry, kind: str, from_unix_ns: int, until_unix_ns: int) -> list[SeriesInfo]:
    """See Store.series."""
    found = [row.info() for row in list(registry.series_by_id.values()) if row.kind == kind]
    return sorted((info for info in found if _is_in(info, from_unix_ns, until_unix_ns)), key=lambda info: info.series_id)


def services(registry: Registry, from_unix_ns: int, until_unix_ns: int) -> list[ServiceInfo]:
    """See Store.catalog."""
    by_service: dict[str, list[SeriesInfo]] = {}
    for row in list(registry.series_by_id.values()):
        by_service.setdefault(row.service, []).append(row.info())
    found = []
    for service, infos in sorted(by_service.items()):
        if any(_is_in(info, from_unix_ns, until_unix_ns) for info in infos):
            first, last = min(info.first_unix_ns for info in infos), max(info.last_unix_ns for info in infos)
            hosts = {info.labels.get("host", "") for info in infos if _is_in(info, from_unix_ns, until_unix_ns)}
            found.append(ServiceInfo(service, first, last, len(hosts), _versions(infos)))
    return found


def _is_in(info: SeriesInfo, from_unix_ns: int, until_unix_ns: int) -> bool:
    return info.first_unix_ns < until_unix_ns and info.last_unix_ns + _SLACK_NS >= from_unix_ns


def _versions(infos: list[SeriesInfo]) -> tuple[VersionInfo, ...]:
    by_version: dict[str, list[SeriesInfo]] = {}
    for info in infos:
        by_version.setdefault(info.labels.get("version", ""), []).append(info)
    made = [
        VersionInfo(version, min(one.first_unix_ns for one in group), max(one.last_unix_ns for one in group))
        for version, group in by_version.items()
    ]
    return tuple(sorted(made, key=lambda version: (version.first_unix_ns, version.version)))
