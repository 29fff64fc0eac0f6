# SPDX-License-Identifier: Apache-2.0
"""Processes that were never read are called what the kernel told of them, and nothing else."""

from agent.process.origins import Origins
from agent.process.settings import ProcessSettings
from agent.process.table import ProcessTable
from agent.records.process import Fate, Origin, ProcessKey
from tests.support.processes import key_of, python

SHELL = ProcessKey(7, 7_000, 2)
CHILD = ProcessKey(23, 23_000, 2)
CURL = ProcessKey(23, 23_000, 3)
CONTAINER = "0123456789abcdef" * 4


def unread(_: ProcessKey) -> bytes:
    return b""


def test_a_program_is_called_by_its_file_and_its_fork_by_what_it_is_a_copy_of() -> None:
    found = Origins(lambda _: b"/")
    found.note([Origin(SHELL, None, 1, b"dash"), Origin(CHILD, SHELL, 1, b"dash"), Origin(CURL, None, 1, b"curl")], unread)
    assert [found.service(key) for key in (SHELL, CHILD, CURL)] == [b"dash", b"dash", b"curl"]
    assert found.service(ProcessKey(23, 23_000, 4)) == b""


def test_a_fork_has_the_service_that_was_read_of_its_parent_and_an_exec_has_not() -> None:
    found = Origins(lambda _: b"/")
    found.note([Origin(CHILD, SHELL, 1, b"dash"), Origin(CURL, None, 1, b"curl")], {SHELL: b"checkout"}.get)  # type: ignore[arg-type]
    assert (found.service(CHILD), found.service(CURL)) == (b"checkout", b"curl")


def test_container_and_unit_go_before_the_name_of_the_file() -> None:
    asked: list[int] = []
    paths = {5: b"/system.slice/getty@tty1.service", 6: f"/system.slice/docker-{CONTAINER}.scope".encode()}

    def path_of(cgroup_id: int) -> bytes:
        asked.append(cgroup_id)
        return paths.get(cgroup_id, b"")

    found = Origins(path_of)
    keys = [ProcessKey(pid, 1, 1) for pid in range(4)]
    found.note([Origin(key, None, group, b"curl") for key, group in zip(keys, (5, 6, 9, 5), strict=True)], unread)
    assert [found.service(key) for key in keys] == [b"getty", CONTAINER[:12].encode(), b"curl", b"getty"]
    assert asked == [5, 6, 9]


def test_memory_has_no_name_and_what_was_told_first_stands() -> None:
    found = Origins(lambda _: b"/")
    found.note([Origin(CURL, None, 1, b""), Origin(CURL, None, 1, b"curl"), Origin(CURL, None, 1, b"next")], unread)
    found.note([Origin(CHILD, None, 1, b"memfd:x")], unread)
    assert (found.service(CURL), found.service(CHILD)) == (b"curl", b"")


def test_only_the_latest_are_kept() -> None:
    found = Origins(lambda _: b"/")
    found.note([Origin(ProcessKey(pid, 1, 1), None, 1, b"curl") for pid in range(10_000)], unread)
    assert found.service(ProcessKey(1_000, 1, 1)) == b""
    assert found.service(ProcessKey(9_999, 1, 1)) == b"curl"


def test_a_program_that_is_another_by_now_is_not_read_as_that() -> None:
    found = ProcessTable(ProcessSettings())
    with python("print('ready'); import signal; signal.pause()") as pid:
        new = key_of(pid)._replace(exec_id=5)
        old = new._replace(exec_id=4)
        found.note([Origin(old, None, 0, b"sh"), Origin(new, None, 0, b"python3")])
        found.see([old])
        assert (found.get(old).fate, found.get(old).service) == (Fate.EXEC_RACE, b"sh")
        found.see([new])
        assert found.get(new).fate is Fate.ALIVE
    found.close()
