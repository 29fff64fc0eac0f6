# SPDX-License-Identifier: Apache-2.0
"""Whatever stands at the address of a server, a command gets an answer or one sentence."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from server.cli.ask import Api, api_at
from server.errors import BadRequest, ServerError


@contextmanager
def answering(head: bytes, body: bytes = b"") -> Iterator[str]:
    """A server that gives these bytes to every question."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.wfile.write(head + body)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def json_head(status: str, length: int) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n".encode()


def test_an_answer_is_given_as_it_is() -> None:
    with answering(json_head("200 OK", 7), b'{"a":7}') as url:
        assert Api(url).get("top") == b'{"a":7}'
        assert Api(url).get_json("top") == {"a": 7}


def test_the_words_of_the_server_come_with_place_and_hint() -> None:
    said = b'{"error":{"message":"no series has a label \'servce\'","hint":"did you mean service?","position":4}}'
    with answering(json_head("400 Bad Request", len(said)), said) as url, pytest.raises(BadRequest) as caught:
        Api(url).get("top", query='cpu{servce="x"}')
    assert str(caught.value).split("\n") == [
        "no series has a label 'servce'",
        '  cpu{servce="x"}',
        "      ^",
        "did you mean service?",
    ]


@pytest.mark.parametrize(
    ("head", "body"),
    [
        pytest.param(b"\x00\x00\x12\x04\x00\x00\x00\x00\x00", b"", id="gRPC port"),
        pytest.param(json_head("200 OK", 100), b"{", id="cut off"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n", b"<html>", id="another page"),
        pytest.param(b"", b"", id="nothing"),
        pytest.param(b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 2\r\n\r\n", b"[]", id="a proxy"),
        pytest.param(json_head("400 Bad Request", 13), b'{"error":[1]}', id="errors of another form"),
    ],
)
def test_something_else_at_the_address_is_told_in_words(head: bytes, body: bytes) -> None:
    with answering(head, body) as url, pytest.raises(ServerError) as caught:
        Api(url).get("top")
    assert url in str(caught.value)


def test_json_that_is_none_is_told_in_words() -> None:
    with answering(json_head("200 OK", 2), b"[]") as url, pytest.raises(ServerError, match="no Emberwatch server"):
        Api(url).get_json("top")


def test_a_port_nobody_listens_on() -> None:
    with pytest.raises(ServerError, match=r"no answer from http://127\.0\.0\.1:1: Connection refused; is the server running there"):
        Api("http://127.0.0.1:1").get("top")


@pytest.mark.parametrize("given", ["127.0.0.1:4040", "http://127.0.0.1:4040", "http://127.0.0.1:4040/"])
def test_an_address_may_lack_what_goes_without_saying(given: str) -> None:
    assert api_at(given).url == "http://127.0.0.1:4040"


@pytest.mark.parametrize(
    "given", ["ftp://127.0.0.1:4040", "file:///etc/passwd", "http://", "http://a:port", "http://a b", "", "http://[::1", "x\ny"]
)
def test_an_address_that_makes_no_sense_is_refused(given: str) -> None:
    with pytest.raises(BadRequest, match="write http://HOST:PORT"):
        api_at(given)


def test_bytes_that_are_no_text_are_refused() -> None:
    """A shell hands over bad UTF-8 as lone surrogates."""
    with pytest.raises(BadRequest, match=r"query is not valid UTF-8: 'cpu\{service=\"a\\udcff\"\}'"):
        Api("http://127.0.0.1:1").get("top", query='cpu{service="a\udcff"}')


def test_a_place_in_one_of_two_questions_has_no_caret() -> None:
    body = b'{"error":{"message":"no series has a label x","hint":"known is host","position":4}}'
    with answering(json_head("400 Bad Request", len(body)), body) as url, pytest.raises(BadRequest) as error:
        Api(url).get("diff", a="cpu{x='1'}", b="cpu{}")
    assert str(error.value) == "no series has a label x\nknown is host"
