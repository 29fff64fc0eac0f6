# SPDX-License-Identifier: Apache-2.0
"""What is kept of deploys as documents: the deploys themselves, their reports, versions that came back, rates that were told."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from server.fleet.deploy import Deploy, Rates, body_of, deploy_of
from server.fleet.runs import Return
from server.store.documents import Collection, Document, Documents

DEPLOYS = Collection("deploys", 5000)
REPORTS = Collection("reports", 5000)
RETURNS = Collection("returns", 2000)
RATES = Collection("rates", 5000)
_NEVER = 0
"""No document here expires: the clock may be anything."""


def key_of(*parts: str | int) -> str:
    """Give a short name for some parts, that cannot run together."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).hexdigest()


def keep_deploy(documents: Documents, deploy: Deploy) -> None:
    """Write it in place of what was known."""
    documents.put(DEPLOYS, Document(deploy.deploy_id, deploy.first_seen_unix_ns, body_of(deploy)), _NEVER)


def kept_deploys(documents: Documents, since_unix_ns: int, most: int | None = None) -> list[Deploy]:
    """Those first seen since then, the latest first."""
    found = documents.newest(DEPLOYS, _NEVER, since_unix_ns=since_unix_ns, most=most)
    return [deploy_of(document.key, document.body) for document in found]


def kept_deploy(documents: Documents, deploy_id: str) -> Deploy | None:
    """One of them."""
    document = documents.get(DEPLOYS, deploy_id, _NEVER)
    return None if document is None else deploy_of(document.key, document.body)


def keep_report(documents: Documents, deploy: Deploy, report: Mapping[str, Any]) -> None:
    """Write the report, then the deploy with its verdict."""
    documents.put(REPORTS, Document(deploy.deploy_id, deploy.first_seen_unix_ns, report), _NEVER)
    keep_deploy(documents, deploy)


def kept_report(documents: Documents, deploy_id: str) -> Mapping[str, Any] | None:
    """None when none was made yet."""
    document = documents.get(REPORTS, deploy_id, _NEVER)
    return None if document is None else document.body


def keep_return(documents: Documents, back: Return) -> None:
    """Write it in place of what was known of that coming back."""
    body = {
        "service": back.service,
        "version": back.version,
        "ended": back.ended_unix_ns,
        "first_by_host": dict(back.first_by_host),
    }
    key = key_of(back.service, back.version, back.ended_unix_ns)
    documents.put(RETURNS, Document(key, back.first_unix_ns, body), _NEVER)


def kept_returns(documents: Documents) -> dict[str, list[Return]]:
    """All of them, by service."""
    found: dict[str, list[Return]] = {}
    for document in documents.newest(RETURNS, _NEVER):
        body = document.body
        back = Return(body["service"], body["version"], body["ended"], body["first_by_host"])
        found.setdefault(back.service, []).append(back)
    return found


def keep_rates(documents: Documents, of: tuple[str, str], rates: Rates, now_unix_ns: int) -> None:
    """Write the rates of a (service, version); both 0 takes them back."""
    key = key_of(*of)
    if not (rates.before or rates.after):
        documents.drop(RATES, key)
        return
    body = {"service": of[0], "version": of[1], "before": rates.before, "after": rates.after}
    documents.put(RATES, Document(key, now_unix_ns, body), _NEVER)


def kept_rates(documents: Documents) -> dict[tuple[str, str], Rates]:
    """All of them, by (service, version)."""
    bodies = [document.body for document in documents.newest(RATES, _NEVER)]
    return {(body["service"], body["version"]): Rates(body["before"], body["after"]) for body in bodies}
