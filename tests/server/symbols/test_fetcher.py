# SPDX-License-Identifier: Apache-2.0
"""The queue: each server once an hour for each build id, the chain in its order, and a server that fails is left alone."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from server.symbols.breaker import FAILURES, REST_S
from server.symbols.debuginfod import Answer, FetchLimits, parse_upstreams
from server.symbols.fetch_log import PAUSE_S
from server.symbols.fetcher import Fetcher, FetchOrder, Told
from tests.server.symbols.conftest import Clock
from tests.server.symbols.programs import compile_program, describe
from tests.support.upstreams import DEADLINE_S, Upstreams, send, until


@pytest.fixture
def told() -> list[Told]:
    return []


@pytest.fixture
def upstreams() -> Iterator[list[Upstreams]]:
    with ExitStack() as stack:
        yield [stack.enter_context(Upstreams()) for _ in range(2)]


Start = Callable[..., Fetcher]


@pytest.fixture
def start(tmp_path: Path, upstreams: list[Upstreams], told: list[Told], clock: Clock) -> Iterator[Start]:
    started: list[Fetcher] = []

    def receive(answer: Told) -> None:
        told.append(answer)
        if answer.descriptor is not None:
            assert os.pread(answer.descriptor, 4, 0) == b"\x7fELF"

    def go() -> Fetcher:
        chain = parse_upstreams(" ".join(upstream.url for upstream in upstreams))
        fetcher = Fetcher(FetchOrder(tmp_path, chain, FetchLimits(silence_s=30.0)), receive, clock, clock)
        started.append(fetcher)
        return fetcher

    yield go
    for fetcher in started:
        fetcher.close()
    for answer in told:
        if answer.descriptor is not None:
            os.close(answer.descriptor)


def asked(fetcher: Fetcher, *build_ids: bytes) -> list[bool]:
    wanted = [fetcher.want(build_id) for build_id in build_ids]
    assert fetcher.wait_quiet(DEADLINE_S)
    return wanted


def identity(number: int) -> bytes:
    return number.to_bytes(20, "big")


def test_chain_ends_with_the_first_that_has_it(tmp_path: Path, start: Start, upstreams: list[Upstreams], told: list[Told]) -> None:
    program = compile_program("int main(void) { return 7; }", tmp_path / "app")
    build_id = describe(program).build_id
    upstreams[1].files[build_id.hex()] = program.read_bytes()
    fetcher = start()
    assert asked(fetcher, build_id) == [True]
    assert [(each.url, each.fetched.answer) for each in told] == [(upstreams[0].url, Answer.MISSING), (upstreams[1].url, Answer.FOUND)]
    assert not fetcher.is_waiting(build_id) and fetcher.queued() == 0


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler: send(handler, 404, b""),
        lambda handler: send(handler, 500, b""),
        lambda handler: send(handler, 302, b"", Location="http://127.0.0.1:1/"),
        lambda handler: send(handler, 200, b"<html>"),
        lambda handler: send(handler, 200, b"\x7fELF" + bytes(5000)),
    ],
    ids=["404", "500", "302", "html", "broken ELF"],
)
def test_once_an_hour_whatever_the_answer(
    start: Start, upstreams: list[Upstreams], clock: Clock, answer: Callable[[BaseHTTPRequestHandler], None]
) -> None:
    """C42, C43, also after a restart in between."""
    del upstreams[1]
    upstreams[0].answer = answer
    fetcher = start()
    assert asked(fetcher, identity(7)) == [True]
    for _ in range(20):
        assert asked(fetcher, identity(7)) == [False]
    fetcher.close()
    clock.now_s += PAUSE_S - 1
    again = start()
    assert asked(again, identity(7)) == [False]
    assert len(upstreams[0].asked) == 1
    clock.now_s += 1
    assert asked(again, identity(7)) == [True]
    assert len(upstreams[0].asked) == 2


def test_file_of_another_build_id_is_refused(tmp_path: Path, start: Start, upstreams: list[Upstreams], told: list[Told]) -> None:
    """A7, S3: a server that answers with a sound file of something else."""
    program = compile_program("int main(void) { return 7; }", tmp_path / "app")
    upstreams[0].files[identity(7).hex()] = program.read_bytes()
    asked(start(), identity(7))
    assert told[0].fetched.answer == Answer.UNUSABLE
    assert told[0].fetched.reason == f"answers with the file of build id {describe(program).build_id.hex()}"


def test_server_that_fails_is_left_alone_and_the_rest_waits(start: Start, upstreams: list[Upstreams], clock: Clock) -> None:
    """C43: five failures, then silence towards it; the second server goes on meanwhile. Later one try, and all that waited."""
    upstreams[0].answer = lambda handler: send(handler, 503, b"")
    fetcher = start()
    asked(fetcher, *(identity(number) for number in range(1, 24)))
    assert (len(upstreams[0].asked), len(upstreams[1].asked)) == (FAILURES, 23)
    assert fetcher.queued() == 23 - FAILURES
    clock.now_s += REST_S
    asked(fetcher, identity(23))
    assert len(upstreams[0].asked) == FAILURES + 1
    upstreams[0].answer = None
    clock.now_s += REST_S
    asked(fetcher, identity(23))
    assert len(upstreams[0].asked) == 23
    assert len(set(upstreams[0].asked)) == len(upstreams[0].asked)
    assert fetcher.queued() == 0


def test_nothing_waits_for_a_server_that_stalls(start: Start, upstreams: list[Upstreams]) -> None:
    upstreams[0].answer = lambda _: upstreams[0].is_over.wait(600) and None
    fetcher = start()
    assert fetcher.want(identity(7))
    until(lambda: len(upstreams[0].asked) == 1)
    assert fetcher.want(identity(8)) and fetcher.is_waiting(identity(7))
    fetcher.close()
    assert len(upstreams[0].asked) == 1
