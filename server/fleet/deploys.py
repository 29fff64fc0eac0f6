# SPDX-License-Identifier: Apache-2.0
"""Deploys, derived from the versions that series carry: which version came when, on which hosts, in whose place.

The first version that was ever seen of a service is no deploy: it may be as old as the service. A version that comes back after another
(a rollback) is a deploy of its own. What was kept of a deploy stands when its series are gone.
"""

from dataclasses import replace

from server.fleet.deploy import Comparison, Deploy, Side
from server.fleet.kept import kept_deploy, kept_deploys, kept_rates, kept_returns, key_of
from server.fleet.runs import Run, changes, runs_of
from server.query.timerange import SECOND_NS, TimeRange
from server.store.protocol import SeriesInfo, Store

LEAST_TOGETHER_NS = 120 * SECOND_NS
"""So long must two versions run side by side to be compared there: before and after differ by more than the version."""
MOST_COMPARED_NS = 3600 * SECOND_NS
_ALL_TIME = (0, 2**62)
_SLACK_NS = 60 * SECOND_NS
"""After a restart of the server the last window of a series is known to a minute."""


def deploys(store: Store, span: TimeRange, service: str = "") -> list[Deploy]:
    """Deploys first seen in the range, the latest first; of one service, or of all."""
    found = {deploy.deploy_id: deploy for deploy in derived(store, service)}
    for kept in kept_deploys(store.documents, span.from_unix_ns):
        if service in {"", kept.service}:
            live = found.get(kept.deploy_id)
            found[kept.deploy_id] = replace(live, verdict=kept.verdict) if live else kept
    chosen = [one for one in found.values() if span.from_unix_ns <= one.first_seen_unix_ns < span.until_unix_ns]
    return sorted(_told(store, chosen), key=lambda deploy: (-deploy.first_seen_unix_ns, deploy.service, deploy.version))


def deploy_by_id(store: Store, deploy_id: str) -> Deploy | None:
    """One deploy, as long as its series are there or it was kept."""
    kept = kept_deploy(store.documents, deploy_id)
    live = next((one for one in derived(store, kept.service if kept else "") if one.deploy_id == deploy_id), None)
    one = replace(live, verdict=kept.verdict) if live and kept else live or kept
    return None if one is None else _told(store, [one])[0]


def derived(store: Store, service: str = "") -> list[Deploy]:
    """All deploys that the series of the store tell of, without notes, rates and verdicts; of one service, or of all."""
    by_service: dict[str, list[SeriesInfo]] = {}
    for kind in store.kinds():
        for info in store.series(kind.name, *_ALL_TIME):
            if service in {"", info.service}:
                by_service.setdefault(info.service, []).append(info)
    returns = kept_returns(store.documents)
    return [
        _deploy(name, run, before) for name, infos in by_service.items() for run, before in changes(runs_of(infos, returns.get(name, ())))
    ]


def _told(store: Store, found: list[Deploy]) -> list[Deploy]:
    """Add what people and pipelines said."""
    notes = {(note.service, note.version): note.text for note in store.deploy_notes()}
    rates = kept_rates(store.documents)
    told = []
    for deploy in found:
        of = deploy.service, deploy.version
        told.append(replace(deploy, annotation=notes.get(of), rates=rates.get(of, deploy.rates)))
    return told


def _deploy(service: str, run: Run, before: Run) -> Deploy:
    waiting = {host for host, last in before.last_by_host.items() if last + _SLACK_NS >= run.first}
    return Deploy(
        deploy_id=key_of(service, run.version, run.first) if run.is_return else key_of(service, run.version),
        service=service,
        version=run.version,
        replaced=before.version,
        first_seen_unix_ns=run.first,
        hosts_done=len(run.last_by_host),
        hosts_total=len(waiting | run.last_by_host.keys()),
        annotation=None,
        comparison=_comparison(run, before),
        is_return=run.is_return,
        first_by_host=run.first_by_host,
    )


def _comparison(run: Run, before: Run) -> Comparison:
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
