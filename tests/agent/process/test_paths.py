# SPDX-License-Identifier: Apache-2.0
"""Tests of what paths give away."""

import pytest

from agent.process.paths import reduce_path


@pytest.mark.parametrize(
    ("path", "reduced"),
    [
        ("/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6"),
        ("/usr/bin/python3.11", "/usr/bin/python3.11"),
        ("/home/alice/x", "/home/…/x"),
        ("/home/alice", "/home/…"),
        ("/var/home/alice/bin/x", "/var/home/…/bin/x"),
        ("/run/user/1000/app/x", "/run/user/…/…/x"),
        ("/tmp/tok_ab12/x", "/tmp/…/x"),
        ("/tmp/tok_ab12", "/tmp/tok_…"),
        ("/tmp/tmpab3xk9_z/spin", "/tmp/…/spin"),
        ("/tmp/pytest-of-root/pytest-0/test_x0/work", "/tmp/…/work"),
        ("/var/tmp/jna-3506402/jna6068045839690239595.tmp", "/var/tmp/…/jna6068045839690239595.tmp"),
        ("/srv/0f8fad5b-d9cb-469f-a165-70867728950e/app", "/srv/…/app"),
        ("/var/lib/docker/overlay2/" + "3f" * 32 + "/merged/app", "/var/lib/docker/overlay2/…/merged/app"),
        ("/opt/deadbeef/app", "/opt/deadbeef/app"),
        ("/opt/deadbee1/app", "/opt/…/app"),
        ("", ""),
        ("[vdso]", "[vdso]"),
    ],
)
def test_what_is_left_of_a_path(path: str, reduced: str) -> None:
    assert reduce_path(path.encode()) == reduced.encode()


def test_bytes_that_are_no_text_pass() -> None:
    assert reduce_path(b"/home/\xff/\xd0\xbf\xd1\n") == "/home/…/".encode() + b"\xd0\xbf\xd1\n"
