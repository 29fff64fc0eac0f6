# SPDX-License-Identifier: Apache-2.0
"""Keeps deploys and makes their reports, by itself, while they roll out: a bounded step at a time in the server's upkeep."""

import logging
from dataclasses import replace

from server.errors import ServerError
from server.fleet.deploy import Deploy, body_of
from server.fleet.deploys import deploys
from server.fleet.events import Beside, Cause, Event, event_id_of, keep_new, nothing_beside
from server.fleet.kept import keep_deploy, keep_report, keep_return, kept_deploys, kept_returns
from server.fleet.report import Json, make_report, missing_words
from server.fleet.returns import find_returns
from server.fleet.selectors import cpu_selector
from server.profile.shift import LEAST_SHIFT
from server.query.profile_query import ProfileQuery
from server.query.timerange import SECOND_NS, TimeRange

log = logging.getLogger(__name__)

MOST_REPORTS = 2
"""A step; what is due longest comes first."""
REACH_NS = 48 * 3600 * SECOND_NS
"""Windows may be so late; an older deploy stays as it is."""
_RETURNS_NS = 6 * 3600 * SECOND_NS
_RETURNS_EVERY_NS = 60 * SECOND_NS
_SOONEST_NS = 30 * SECOND_NS
_PACE = 20
"""A report is made anew when the deploy's age grew by a twentieth."""


class Reporter:
    """One for each server."""

    def __init__(self, query: ProfileQuery, beside: Beside = nothing_beside) -> None:
        """`beside` is written with each event that is new."""
        self._query = query
        self._beside = beside
        self._looked_unix_ns = 0

    def step(self) -> bool:
        """Find versions that came back, keep deploys as they are now, make the reports that are due; True when more are."""
        query, now = self._query, self._query.now_unix_ns()
        documents = query.store.documents
        if abs(now - self._looked_unix_ns) >= _RETURNS_EVERY_NS:
            self._keep_returns(now)
        span = TimeRange(max(0, now - REACH_NS), now + 1)
        kept = {one.deploy_id: body_of(one) for one in kept_deploys(documents, span.from_unix_ns)}
        found = deploys(query.store, span)
        for deploy in found:
            if kept.get(deploy.deploy_id) != body_of(deploy):
                keep_deploy(documents, deploy)
        due = sorted((one for one in found if self._is_due(one, now)), key=lambda one: one.verdict.made_unix_ns if one.verdict else 0)
        for deploy in due[:MOST_REPORTS]:
            self._report(deploy)
        return len(due) > MOST_REPORTS

    def _keep_returns(self, now_unix_ns: int) -> None:
        store = self._query.store
        for back in find_returns(store, TimeRange(max(0, now_unix_ns - _RETURNS_NS), now_unix_ns + 1), kept_returns(store.documents)):
            log.info("version came back service=%r version=%r hosts=%d", back.service, back.version, len(back.first_by_host))
            keep_return(store.documents, back)
        self._looked_unix_ns = now_unix_ns

    def _is_due(self, deploy: Deploy, now_unix_ns: int) -> bool:
        if missing_words(deploy):
            return False
        verdict = deploy.verdict
        if verdict is None:
            return True
        age = verdict.made_unix_ns - deploy.first_seen_unix_ns
        return not verdict.is_final and now_unix_ns - verdict.made_unix_ns >= max(_SOONEST_NS, age // _PACE)

    def _report(self, deploy: Deploy) -> None:
        try:
            report = make_report(self._query, deploy)
        except ServerError as error:  # Nothing is lost: the same report is due again.
            log.warning("report put off service=%r version=%r reason=%s", deploy.service, deploy.version, error)
            return
        if report is None:
            return
        keep_new(self._query.store.documents, events_of(deploy, report.body), self._beside)
        keep_report(self._query.store.documents, replace(deploy, verdict=report.verdict), report.body)
        log.info("report made service=%r version=%r verdict=%r", deploy.service, deploy.version, report.verdict.words)


def events_of(deploy: Deploy, report: Json) -> list[Event]:
    """Give the events of a report: the functions it names that changed by enough of the service."""
    before, after = deploy.comparison.before, deploy.comparison.after
    sides = [(cpu_selector(service=deploy.service, version=side.version).text, side.range) for side in (before, after)]
    return [
        Event(
            event_id=event_id_of(deploy.service, row["name"], deploy.deploy_id),
            cause=Cause.DEPLOY,
            service=deploy.service,
            function=row["name"],
            binary=row["binary"],
            at_unix_ns=deploy.first_seen_unix_ns,
            before=row["a_share"],
            after=row["b_share"],
            low=row["low"],
            high=row["high"],
            explains=tuple(row["explains"]),
            deploy_id=deploy.deploy_id,
            version=deploy.version,
            a=sides[0],
            b=sides[1],
        )
        for row in report["rows"]
        if abs(row["change"]) >= LEAST_SHIFT
    ]
