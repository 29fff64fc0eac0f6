# SPDX-License-Identifier: Apache-2.0
"""Webhooks: signed, sent again until they are taken, to configured hosts alone, and without a word of their secrets."""

import hashlib
import hmac
import json
import logging
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from server.fleet.events import keep_new
from server.fleet.webhooks import DELIVERIES, Deliverer, Hooks, payload, post, signature
from server.query.profile_query import ProfileQuery
from tests.server.fleet.test_events import EVENT
from tests.server.query.fakes import SECOND_NS, START_NS, FakeNamer, FakeStore

URL = "https://hooks.example/services/T0/s3cr3t-path"


class Hooked:
    """A deliverer with a clock, and a receiver that answers what it is told to."""

    def __init__(self, *urls: str) -> None:
        self.store, self.now_ns = FakeStore(), START_NS
        query = ProfileQuery(self.store, FakeNamer(), lambda: self.now_ns)
        self.deliverer = Deliverer(query, Hooks(urls or (URL,), "s3cr3t", "https://ew.example/"), self._send)
        self.answers: list[int] = []
        self.got: list[tuple[str, bytes, Mapping[str, str]]] = []
        keep_new(self.store.documents, [EVENT], self.deliverer.deliveries)

    def _send(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        self.got.append((url, body, headers))
        status = self.answers.pop(0) if self.answers else 200
        if status == 0:
            raise TimeoutError("timed out")
        return status

    def waiting(self) -> int:
        return len(self.store.documents.newest(DELIVERIES, 0))


def test_a_hook_is_told_once_and_signed() -> None:
    hooked = Hooked()
    hooked.deliverer.step()
    hooked.deliverer.step()
    ((url, body, headers),) = hooked.got
    assert url == URL and headers["Content-Type"] == "application/json" and hooked.waiting() == 0
    at, mac = (part.partition("=")[2] for part in headers["X-Emberwatch-Signature"].split(","))
    assert int(at) == START_NS // SECOND_NS
    assert hmac.new(b"s3cr3t", at.encode() + b"." + body, hashlib.sha256).hexdigest() == mac
    message = json.loads(body)
    assert message["text"] == EVENT.words
    assert message["metadata"]["event_payload"]["function"] == "parse"
    assert message["attachments"][0]["title_link"] == "https://ew.example/events"
    assert b"s3cr3t" not in body


def test_it_is_sent_again_with_growing_pauses_until_it_is_taken() -> None:
    hooked = Hooked()
    hooked.answers = [0, 500, 302, 204]
    tried = []
    for second in range(0, 400, 5):
        hooked.now_ns = START_NS + second * SECOND_NS
        before = len(hooked.got)
        hooked.deliverer.step()
        tried += [second] * (len(hooked.got) - before)
    assert tried == [0, 10, 40, 160]
    assert hooked.waiting() == 0


def test_after_a_day_it_is_given_up() -> None:
    hooked = Hooked()
    hooked.answers = [503] * 1000
    for hour in range(30):
        hooked.now_ns = START_NS + hour * 3600 * SECOND_NS
        hooked.deliverer.step()
    assert hooked.waiting() == 0 and len(hooked.got) < 30


def test_each_hook_is_told_by_itself_and_one_that_left_the_configuration_is_not() -> None:
    hooked = Hooked(URL, "http://other.example/")
    hooked.answers = [500, 200]
    hooked.deliverer.step()
    assert {url for url, *_ in hooked.got} == {URL, "http://other.example/"} and hooked.waiting() == 1
    hooked.deliverer = Deliverer(hooked.deliverer._query, Hooks(("http://new.example/",)), hooked._send)
    hooked.now_ns += 60 * SECOND_NS
    hooked.deliverer.step()
    assert len(hooked.got) == 2 and hooked.waiting() == 0


def test_names_are_no_markup_in_slack() -> None:
    hostile = EVENT.__class__(**{name: getattr(EVENT, name) for name in EVENT.__slots__} | {"function": "<!channel> & <b>"})
    assert "&lt;!channel&gt; &amp; &lt;b&gt;" in json.loads(payload(hostile, ""))["text"]
    assert "title_link" not in json.loads(payload(hostile, ""))["attachments"][0]


def test_logs_name_the_host_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    hooked = Hooked()
    hooked.answers = [0, 500]
    with caplog.at_level(logging.DEBUG):
        for _ in range(2):
            hooked.deliverer.step()
            hooked.now_ns += 60 * SECOND_NS
    assert "host=hooks.example" in caplog.text and "s3cr3t" not in caplog.text


def test_a_real_post_follows_no_redirect() -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(307 if self.path == "/move" else 204)
            self.send_header("Location", "/elsewhere")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        url = f"http://127.0.0.1:{server.server_port}"
        assert (post(f"{url}/move", b"{}", {}), post(f"{url}/take", b"{}", {})) == (307, 204)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert asked == ["/move", "/take"]
    with pytest.raises(OSError):
        post("http://127.0.0.1:1/", b"{}", {})


def test_a_signature_by_hand() -> None:
    mac = hmac.new(b"key", b"7.body", hashlib.sha256).hexdigest()
    assert signature("key", b"body", 7) == f"t=7,v1={mac}"
