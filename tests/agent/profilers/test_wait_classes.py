# SPDX-License-Identifier: Apache-2.0
"""The one table of wait classes, against the list of issue and proto."""

import re
from pathlib import Path

from agent.profilers.wait_classes import BY_FILE, NAMES, WaitClass, call_classes

HEADER = Path(__file__).resolve().parents[3] / "bpf/shared/thread.h"


def test_classes_are_these_and_no_others() -> None:
    assert set(NAMES) == {b"lock", b"disk", b"net", b"pipe", b"poll", b"sleep", b"page", b"child", b"other"}


def test_numbers_are_those_of_the_program() -> None:
    words = re.search(r"enum wait_class \{([^}]*)\}", HEADER.read_text())
    assert words
    names = [word.strip() for word in words[1].split(",") if word.strip()]
    assert names[: len(WaitClass)] == [f"WAIT_{one.name}" for one in WaitClass]
    assert names.index("WAIT_BY_FILE") == BY_FILE


def test_calls_have_the_class_of_what_they_wait_for() -> None:
    table = call_classes()
    assert [table[number] for number in (73, 74, 45, 232, 230, 9, 61, 0, 511)] == [
        WaitClass.LOCK,
        WaitClass.DISK,
        WaitClass.NET,
        WaitClass.POLL,
        WaitClass.SLEEP,
        WaitClass.PAGE,
        WaitClass.CHILD,
        BY_FILE,
        WaitClass.OTHER,
    ]
