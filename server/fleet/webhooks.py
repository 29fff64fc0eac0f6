# SPDX-License-Identifier: Apache-2.0
"""Tells events to webhooks: JSON that Slack takes as it is, signed, sent again with growing pauses until it was taken or a day is over.

Only addresses of the configuration are ever called, and redirects are not followed. Addresses may hold a secret of their own (those of
Slack do), so logs and answers name a hook by its host alone.

    X-Emberwatch-Signature: t=<unix seconds>,v1=<hex of HMAC-SHA256 over "<t>.<body>">
"""

import hashlib
import hmac
import http.client
import json
import logging
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any

from server.fleet.events import Cause, Event, kept_event
from server.fleet.kept import key_of
from server.query.profile_query import ProfileQuery
from server.query.timerange import SECOND_NS
from server.store.documents import Collection, Document

log = logging.getLogger(__name__)

DELIVERIES = Collection("deliveries", 10_000)
TIMEOUT_S = 5.0
MOST_A_STEP = 5
_NEVER = 0
_PAUSES_S = (10, 30, 120, 600, 1800, 3600)
"""Between tries; the last one again and again."""
_GIVE_UP_S = 86_400

Send = Callable[[str, bytes, Mapping[str, str]], int]
"""Posts a body with headers; gives the status. Raises OSError or http.client.HTTPException."""


@dataclass(frozen=True, slots=True)
class Hooks:
    """What the configuration says of webhooks."""

    urls: tuple[str, ...] = ()
    secret: str = ""
    page_url: str = ""
    """Where people find the page; links begin with it."""


def post(url: str, body: bytes, headers: Mapping[str, str]) -> int:
    """Post once, without following redirects."""
    request = urllib.request.Request(url, body, dict(headers), method="POST")
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def signature(secret: str, body: bytes, at_s: int) -> str:
    """Give the value of the header; a receiver recomputes v1 and refuses an old t."""
    mac = hmac.new(secret.encode(), f"{at_s}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={at_s},v1={mac}"


def payload(event: Event, page_url: str) -> bytes:
    """Give the message: `text` and `attachments` for people in Slack, `metadata` for programs."""
    link = f"{page_url.rstrip('/')}/deploys/{event.deploy_id}" if event.cause is Cause.DEPLOY else f"{page_url.rstrip('/')}/events"
    facts: dict[str, Any] = {
        "id": event.event_id,
        "cause": event.cause,
        "service": event.service,
        "function": event.function,
        "binary": event.binary,
        "at_s": event.at_unix_ns / SECOND_NS,
        "before": event.before,
        "after": event.after,
        "low": event.low,
        "high": event.high,
        "version": event.version or None,
        "deploy_id": event.deploy_id or None,
        "link": link,
    }
    detail = f"95 % interval {event.low * 100:+.2f} to {event.high * 100:+.2f} points"
    explained = f"; explains {', '.join(event.explains[:5])}" if event.explains else ""
    attachment = {
        "color": "#dd6b20" if event.after > event.before else "#2b6cb0",
        "text": _slack(detail + explained),
        "fallback": _slack(event.words),
        **({"title": "Report" if event.cause is Cause.DEPLOY else "Events", "title_link": link} if page_url else {}),
    }
    message = {
        "text": _slack(event.words),
        "attachments": [attachment],
        "metadata": {"event_type": "emberwatch_event", "event_payload": facts},
    }
    return json.dumps(message).encode()


class Deliverer:
    """Keeps what is to be told and tells it, a bounded step at a time. What was not taken survives a restart."""

    def __init__(self, query: ProfileQuery, hooks: Hooks, send: Send = post) -> None:
        self._query = query
        self._hooks = hooks
        self._send = send

    def deliveries(self, event: Event) -> list[tuple[Collection, Document]]:
        """Give what says that each hook is to be told, to be written with the event."""
        now = self._query.now_unix_ns()
        hooks = [key_of(url) for url in self._hooks.urls]
        bodies = [{"event": event.event_id, "hook": hook, "tries": 0, "next": now, "since": now} for hook in hooks]
        return [(DELIVERIES, Document(f"{event.event_id}.{hook}", now, body)) for hook, body in zip(hooks, bodies, strict=True)]

    def step(self) -> None:
        """Tell what is due, the longest waiting first."""
        now, documents = self._query.now_unix_ns(), self._query.store.documents
        waiting = documents.newest(DELIVERIES, _NEVER) if self._hooks.urls else []
        due = sorted((one for one in waiting if one.body["next"] <= now), key=lambda one: (one.body["next"], one.at_unix_ns))
        for document in due[:MOST_A_STEP]:
            self._deliver(document, now)

    def _deliver(self, document: Document, now_unix_ns: int) -> None:
        documents, body = self._query.store.documents, document.body
        url = next((one for one in self._hooks.urls if key_of(one) == body["hook"]), None)
        event = kept_event(documents, body["event"])
        if url is None or event is None or self._try(url, event, now_unix_ns):
            documents.drop(DELIVERIES, document.key)
            return
        tries = body["tries"] + 1
        if now_unix_ns - body["since"] > _GIVE_UP_S * SECOND_NS:
            log.error("webhook given up host=%s event=%s tries=%d", _host(url), event.event_id, tries)
            documents.drop(DELIVERIES, document.key)
            return
        pause = _PAUSES_S[min(tries, len(_PAUSES_S)) - 1] * SECOND_NS
        documents.put(
            DELIVERIES, Document(document.key, document.at_unix_ns, {**body, "tries": tries, "next": now_unix_ns + pause}), _NEVER
        )

    def _try(self, url: str, event: Event, now_unix_ns: int) -> bool:
        """Whether it was taken."""
        body, headers = payload(event, self._hooks.page_url), {"Content-Type": "application/json", "User-Agent": "emberwatch"}
        if self._hooks.secret:
            headers["X-Emberwatch-Signature"] = signature(self._hooks.secret, body, now_unix_ns // SECOND_NS)
        try:
            status = self._send(url, body, headers)
        except (OSError, http.client.HTTPException) as error:
            log.warning("webhook not reached host=%s reason=%s", _host(url), type(error).__name__)
            return False
        if not 200 <= status < 300:
            log.warning("webhook refused host=%s status=%d", _host(url), status)
        return 200 <= status < 300


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves a redirect as the answer it is."""

    def redirect_request(  # noqa: PLR0913, PLR0917
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None


def _host(url: str) -> str:
    return urllib.parse.urlsplit(url).hostname or "?"


def _slack(text: str) -> str:
    """Names are data, never markup of Slack."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
