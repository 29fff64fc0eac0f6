# SPDX-License-Identifier: Apache-2.0
"""Thread names are few, stable and raw."""

import pytest

from agent.collect.threads import MOST_NAMES, OTHER, ThreadNames

FULL_WIDTH_ONE = "\uff11".encode()


@pytest.mark.parametrize(
    ("comm", "name"),
    [
        (b"worker-12", b"worker-N"),
        (b"7", b"N"),
        (b"a1b22", b"aNbN"),
        (b"", b""),
        (b"\xc1\xff;\n3", b"\xc1\xff;\nN"),
        (FULL_WIDTH_ONE, FULL_WIDTH_ONE),
    ],
)
def test_runs_of_digits_become_one_n(comm: bytes, name: bytes) -> None:
    assert ThreadNames().name(b"web", comm) == name


def _letters(number: int) -> bytes:
    return bytes([97 + number // 26, 97 + number % 26])


def test_sixty_four_names_of_a_service_then_other() -> None:
    names = ThreadNames()
    assert [names.name(b"web", _letters(number)) for number in range(64)] == [_letters(number) for number in range(64)]
    assert names.name(b"web", b"late") == OTHER
    assert names.name(b"web", _letters(63)) == _letters(63)
    assert names.name(b"db", b"late") == b"late"


def test_threads_with_one_pattern_use_one_name() -> None:
    names = ThreadNames()
    assert {names.name(b"web", b"io-%d" % number) for number in range(10 * MOST_NAMES)} == {b"io-N"}
    assert names.name(b"web", b"main") == b"main"
