# SPDX-License-Identifier: Apache-2.0
"""Events: a function whose share of its service changed beyond noise and by enough, after a deploy or without one. Once per subtree."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from server.fleet.kept import key_of
from server.fleet.words import MINUS
from server.query.timerange import TimeRange
from server.store.documents import Collection, Document, Documents

log = logging.getLogger(__name__)

EVENTS = Collection("events", 10_000)
SAME_NS = 2 * 3600 * 10**9
"""The same function of a service within it is the same event."""
_NEVER = 0


class Cause(StrEnum):
    """What the change came with."""

    DEPLOY = "deploy"
    """A report of a deploy names the function."""
    NONE = "none"
    """Nothing was deployed; the watch saw it."""


@dataclass(frozen=True, slots=True)
class Event:
    """One of them."""

    event_id: str
    cause: Cause
    service: str
    function: str
    binary: str
    at_unix_ns: int
    """When it began, to some minutes."""
    before: float
    """Share of the service."""
    after: float
    low: float
    """Ends of the 95 % interval of the difference."""
    high: float
    explains: tuple[str, ...]
    """Functions that changed along with it."""
    deploy_id: str
    """"" without a deploy."""
    version: str
    a: tuple[str, TimeRange]
    """Selector and range of before; `b` of after."""
    b: tuple[str, TimeRange]

    @property
    def words(self) -> str:
        """One sentence, without where."""
        change = self.after - self.before
        sign = "+" if change > 0 else MINUS
        came = f" with {self.version}" if self.cause is Cause.DEPLOY else ""
        return f"{self.function}: {_share(self.before)} to {_share(self.after)} of {self.service} ({sign}{_share(abs(change))}){came}"


Beside = Callable[[Event], Sequence[tuple[Collection, Document]]]
"""What is to be written with an event: that somebody is to be told of it."""


def nothing_beside(_: Event) -> Sequence[tuple[Collection, Document]]:
    """Give nothing."""
    return ()


def keep_new(documents: Documents, found: Sequence[Event], beside: Beside = nothing_beside) -> list[Event]:
    """Write those that are new: not the same function of the service within SAME_NS, not the same deploy again. Gives them.

    An event and what is `beside` it are written together: a server that ends in between has neither, and finds the event again.
    """
    new = []
    for event in found:
        since = max(0, event.at_unix_ns - SAME_NS)
        same = [
            one
            for one in kept_events(documents, since)
            if one.event_id == event.event_id
            or ((one.service, one.function) == (event.service, event.function) and abs(one.at_unix_ns - event.at_unix_ns) <= SAME_NS)
        ]
        if not same and documents.get(EVENTS, event.event_id, _NEVER) is None:
            documents.put_all([(EVENTS, Document(event.event_id, event.at_unix_ns, _body(event))), *beside(event)], _NEVER)
            log.info("event service=%r function=%r before=%.4f after=%.4f", event.service, event.function, event.before, event.after)
            new.append(event)
    return new


def kept_events(documents: Documents, since_unix_ns: int) -> list[Event]:
    """Those since then, the latest first."""
    return [_event(document.key, document.body) for document in documents.newest(EVENTS, _NEVER, since_unix_ns=since_unix_ns)]


def kept_event(documents: Documents, event_id: str) -> Event | None:
    """One of them."""
    document = documents.get(EVENTS, event_id, _NEVER)
    return None if document is None else _event(document.key, document.body)


def event_id_of(service: str, function: str, what: str | int) -> str:
    """Give the id: the same function after the same deploy, or at the same time, has the same."""
    return key_of(service, function, what)


def _body(event: Event) -> dict[str, Any]:
    sides = [[text, span.from_unix_ns, span.until_unix_ns] for text, span in (event.a, event.b)]
    numbers = [event.at_unix_ns, event.before, event.after, event.low, event.high]
    return {
        "cause": event.cause,
        "of": [event.service, event.function, event.binary],
        "numbers": numbers,
        "explains": list(event.explains),
        "deploy": [event.deploy_id, event.version],
        "sides": sides,
    }


def _event(event_id: str, body: Mapping[str, Any]) -> Event:
    a, b = ((text, TimeRange(start, until)) for text, start, until in body["sides"])
    service, function, binary = body["of"]
    at_unix_ns, before, after, low, high = body["numbers"]
    deploy_id, version = body["deploy"]
    return Event(
        event_id=event_id,
        cause=Cause(body["cause"]),
        service=service,
        function=function,
        binary=binary,
        at_unix_ns=at_unix_ns,
        before=before,
        after=after,
        low=low,
        high=high,
        explains=tuple(body["explains"]),
        deploy_id=deploy_id,
        version=version,
        a=a,
        b=b,
    )


def _share(share: float) -> str:
    return f"{share * 100:.1f} %"
