# SPDX-License-Identifier: Apache-2.0
"""Events are kept once: by id, and by function and time."""

from dataclasses import replace

from server.fleet.events import SAME_NS, Cause, Event, keep_new, kept_event, kept_events
from server.query.timerange import TimeRange
from tests.server.query.fakes import START_NS, FakeStore

SPAN = TimeRange(START_NS, START_NS + 720 * 10**9)
EVENT = Event(
    "e1", Cause.NONE, "shop", "parse", "app", START_NS, 0.02, 0.03, 0.008, 0.012, ("scan",), "", "", ("cpu{}", SPAN), ("cpu{}", SPAN)
)  # fmt: skip


def test_an_event_is_kept_whole() -> None:
    documents = FakeStore().documents
    assert keep_new(documents, [EVENT]) == [EVENT]
    assert kept_events(documents, 0) == [EVENT] and kept_event(documents, "e1") == EVENT and kept_event(documents, "e2") is None
    assert EVENT.words == "parse: 2.0 % to 3.0 % of shop (+1.0 %)"
    less = replace(EVENT, before=0.03, after=0.0, cause=Cause.DEPLOY, version="2.4.1")
    assert less.words == "parse: 3.0 % to 0.0 % of shop (−3.0 %) with 2.4.1"


def test_the_same_function_soon_after_is_the_same() -> None:
    documents = FakeStore().documents
    keep_new(documents, [EVENT])
    assert keep_new(documents, [replace(EVENT, event_id="e2", at_unix_ns=START_NS + SAME_NS)]) == []
    assert keep_new(documents, [replace(EVENT, event_id="e2", at_unix_ns=START_NS - SAME_NS)]) == []
    assert keep_new(documents, [replace(EVENT, event_id="e1", at_unix_ns=START_NS + 9 * SAME_NS, function="other")]) == []
    others = [replace(EVENT, event_id="e3", at_unix_ns=START_NS + SAME_NS + 1), replace(EVENT, event_id="e4", service="mail")]
    assert keep_new(documents, others) == others
