# SPDX-License-Identifier: Apache-2.0
"""Nobody is asked twice within the hour, across restarts, damaged files and clocks that jump."""

from pathlib import Path

import pytest

from server.symbols.fetch_log import MOST_PAUSE_S, PAUSE_S, FetchLog
from tests.server.symbols.conftest import Clock

ID, URL = b"\x12" * 20, "http://one"


def test_an_hour_between_requests_and_longer_each_time_for_who_asks_by_itself(tmp_path: Path, clock: Clock) -> None:
    log = FetchLog(tmp_path / "log", clock)
    assert log.wait_s(ID, URL) == 0.0
    log.note(ID, URL)
    assert log.wait_s(ID, URL) == PAUSE_S
    assert log.wait_s(ID, "http://two") == log.wait_s(b"\x13" * 20, URL) == 0.0
    clock.now_s += PAUSE_S - 1
    assert log.wait_s(ID, URL) == 1.0
    clock.now_s += 1
    assert log.wait_s(ID, URL) == log.wait_s(ID, URL, is_patient=True) == 0.0
    log.note(ID, URL)
    clock.now_s += PAUSE_S
    assert (log.wait_s(ID, URL), log.wait_s(ID, URL, is_patient=True)) == (0.0, PAUSE_S)
    for _ in range(20):
        log.note(ID, URL)
    assert log.wait_s(ID, URL, is_patient=True) == MOST_PAUSE_S


def test_restart_remembers(tmp_path: Path, clock: Clock) -> None:
    log = FetchLog(tmp_path / "log", clock)
    log.note(ID, URL)
    log.note(ID, URL)
    clock.now_s += 60
    again = FetchLog(tmp_path / "log", clock)
    assert again.wait_s(ID, URL) == PAUSE_S - 60
    assert again.wait_s(ID, URL, is_patient=True) == 2 * PAUSE_S - 60


@pytest.mark.parametrize("junk", [b"", b"\xff\xfe\n\n", b"x y z w\n", b"1700000000 1 zz http://one\n", b"nan 1 12 http://one\n", b"17 1"])
def test_damaged_log_is_passed_over(tmp_path: Path, clock: Clock, junk: bytes) -> None:
    path = tmp_path / "log"
    FetchLog(path, clock).note(ID, URL)
    path.write_bytes(junk + b"\n" + path.read_bytes() + junk)
    again = FetchLog(path, clock)
    assert again.wait_s(ID, URL) == PAUSE_S
    again.note(ID, "http://two")
    assert FetchLog(path, clock).wait_s(ID, "http://two") == PAUSE_S


def test_clock_that_was_set_back_keeps_nobody_waiting_longer(tmp_path: Path, clock: Clock) -> None:
    log = FetchLog(tmp_path / "log", clock)
    log.note(ID, URL)
    clock.now_s -= 365 * 86_400
    assert log.wait_s(ID, URL) == PAUSE_S
    assert FetchLog(tmp_path / "log", clock).wait_s(ID, URL) == PAUSE_S


def test_file_stays_small(tmp_path: Path, clock: Clock) -> None:
    log = FetchLog(tmp_path / "log", clock)
    for _ in range(2500):
        log.note(ID, URL)
    assert len((tmp_path / "log").read_text().splitlines()) <= 1003
    assert FetchLog(tmp_path / "log", clock).wait_s(ID, URL) == PAUSE_S


def test_directory_that_is_gone_is_no_reason_to_forget(tmp_path: Path, clock: Clock) -> None:
    log = FetchLog(tmp_path / "missing" / "log", clock)
    log.note(ID, URL)
    assert log.wait_s(ID, URL) == PAUSE_S
