# SPDX-License-Identifier: Apache-2.0
"""Tests of which perf maps are read, and when; the process is a folder laid out like /proc/42."""

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from agent.process.directory import ProcessDirectory
from agent.process.perf_map_file import PerfMapFiles, PerfMapState, with_jit
from agent.process.settings import ProcessSettings
from agent.process.table import ProcessTable
from agent.records.process import MappedBinary, Mapping, MappingKind
from tests.support.processes import key_of, python

NSPID = 17


class Host:
    """Process 42, PID 17 in its namespace, with a clock that stands still unless moved."""

    def __init__(self, tmp_path: Path, settings: ProcessSettings | None = None) -> None:
        self.map = tmp_path / "42/root/tmp/perf-17.map"
        self.map.parent.mkdir(parents=True)
        (tmp_path / "42/status").write_text(f"Uid:\t{os.getuid()}\t{os.geteuid()}\t0\t0\nNStgid:\t42\t{NSPID}\n")
        self.proc = tmp_path
        self.now_s = 0.0
        self.boot_unix_ns = 1_700_000_000 * 10**9
        self.files = PerfMapFiles(settings or ProcessSettings(), tmp_path, lambda: self.now_s, lambda: self.boot_unix_ns)
        self.state: PerfMapState | None = None

    def meet(self, start_boot_ns: int, is_after_exec: bool = False) -> None:
        """First sight of the process, or of another program in it."""
        self.state = self.files.state_at_first_sight(42, NSPID, start_boot_ns, is_after_exec=is_after_exec)

    def refresh(self) -> list[bytes]:
        """Names known after a look at the file."""
        directory = ProcessDirectory.open(self.proc, 42)
        assert directory is not None
        with directory:
            namespace_pid = directory.namespace_pid()
            if self.files.is_changed(42, namespace_pid, self.state):
                self.state = self.files.read(directory, namespace_pid, self.state)
        self.now_s += 100
        return list(self.state.perf_map.names) if self.state is not None and self.state.perf_map is not None else []


def test_a_map_is_found_by_the_innermost_pid(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert host.refresh() == []
    host.map.write_bytes(b"10 7 f\n")
    assert host.refresh() == [b"f"]


def test_a_map_that_grows_is_cut_and_rewritten_is_followed(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.map.write_bytes(b"")
    assert host.refresh() == []
    host.map.write_bytes(b"10 7 first\n")
    assert host.refresh() == [b"first"]
    host.map.write_bytes(b"10 7 first\n20 7 sec")
    assert host.refresh() == [b"first"]
    host.map.write_bytes(b"10 7 first\n20 7 second\n")
    assert host.refresh() == [b"first", b"second"]
    host.map.write_bytes(b"30 7 x\n")
    assert host.refresh() == [b"x"]
    host.map.unlink()
    assert host.refresh() == [b"x"]


def test_an_unchanged_map_is_not_read_again(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.map.write_bytes(b"10 7 f\n")
    host.refresh()
    before = host.state
    host.refresh()
    assert host.state is before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_map_of_another_user_is_refused(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.map.write_bytes(b"10 7 forged\n")
    os.chown(host.map, 65534, 65534)
    assert host.refresh() == []
    assert host.files.refused == 1
    host.refresh()
    assert host.files.refused == 1


def test_links_and_fifos_are_refused(tmp_path: Path) -> None:
    host = Host(tmp_path)
    (tmp_path / "elsewhere").write_bytes(b"10 7 forged\n")
    host.map.symlink_to(tmp_path / "elsewhere")
    assert host.refresh() == []
    host.map.unlink()
    os.mkfifo(host.map)
    assert host.refresh() == []
    assert host.files.refused == 2


def test_a_giant_map_is_read_up_to_its_limit(tmp_path: Path) -> None:
    host = Host(tmp_path, replace(ProcessSettings(), perf_map_file_bytes=7 * 23))
    host.map.write_bytes(b"".join(b"%02x 1 f\n" % n for n in range(100)))
    assert len(host.refresh()) == 7 * 23 // len(b"00 1 f\n")
    assert host.files.truncated == 1


def test_maps_share_one_budget_of_memory(tmp_path: Path) -> None:
    host = Host(tmp_path, replace(ProcessSettings(), perf_map_total_bytes=100))
    host.map.write_bytes(b"10 7 " + b"n" * 90 + b"\n")
    assert host.refresh() == []
    assert host.files.refused == 1
    host.map.write_bytes(b"10 7 small\n")
    assert host.refresh() == [b"small"]


def test_the_largest_map_of_who_holds_the_most_makes_room(tmp_path: Path) -> None:
    files = PerfMapFiles(replace(ProcessSettings(), perf_map_total_bytes=300), tmp_path, lambda: 0.0, lambda: 0)
    states: list[PerfMapState | None] = []
    for pid, user, name_bytes in ((42, 7, 23), (43, 23, 97), (44, 23, 89), (45, 7, 29)):
        file = tmp_path / f"{pid}/root/tmp/perf-{NSPID}.map"
        file.parent.mkdir(parents=True)
        file.write_bytes(b"10 7 " + b"n" * name_bytes + b"\n")
        os.chown(file, user, 0)
        (tmp_path / f"{pid}/status").write_text(f"Uid:\t{user}\t{user}\t0\t0\nNStgid:\t{pid}\t{NSPID}\n")
        directory = ProcessDirectory.open(tmp_path, pid)
        assert directory is not None
        with directory:
            states.append(files.read(directory, NSPID, None))
    numbers = [state.number for state in states if state is not None]
    # Each takes 24 bytes and its text: 53 + 127 + 119 fit, the last makes user 23, who holds most, give up the largest.
    assert files.take_given_up() == {numbers[1]}
    assert files.take_given_up() == frozenset()
    assert [state is not None and state.perf_map is not None for state in states] == [True] * 4


def test_links_in_the_root_of_the_process_stay_in_it(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.map.write_bytes(b"10 7 f\n")
    root = tmp_path / "42/root"
    (root / "var").mkdir()
    (root / "tmp").rename(root / "var/tmp")
    (root / "tmp").symlink_to("/var/tmp")
    assert host.refresh() == [b"f"]


def test_a_map_that_costs_too_much_waits(tmp_path: Path) -> None:
    host = Host(tmp_path, replace(ProcessSettings(), perf_map_cpu_burst_s=0.0, perf_map_cpu_share_total=0.0))
    host.map.write_bytes(b"10 7 f\n")
    assert host.refresh() == []
    assert host.files.put_off == 1


def test_memory_that_a_map_names_becomes_jit(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.map.write_bytes(b"1800 7 f\n")
    host.refresh()
    assert host.state is not None
    mappings = tuple(
        MappedBinary(Mapping(start, start + 0x1000, 0, (0, 0), 0, b""), kind, None)
        for start, kind in ((0x1000, MappingKind.ANONYMOUS), (0x2000, MappingKind.ANONYMOUS), (0x3000, MappingKind.UNREADABLE))
    )
    kinds = [mapped.kind for mapped in with_jit(mappings, host.state.perf_map)]
    assert kinds == [MappingKind.JIT, MappingKind.ANONYMOUS, MappingKind.UNREADABLE]
    assert with_jit(mappings, None) == mappings


def test_a_map_left_by_an_earlier_process_of_the_pid_is_not_this_ones(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.map.write_bytes(b"10 7 of_the_dead\n")
    os.utime(host.map, ns=(0, host.boot_unix_ns + 4_000_000_000))
    host.meet(start_boot_ns=7_000_000_000)
    assert host.refresh() == []
    host.map.write_bytes(b"10 7 own\n")
    assert host.refresh() == [b"own"]


def test_a_map_as_old_as_the_process_is_its_own(tmp_path: Path) -> None:
    """The clock of files may lag a little, and may have been set a little."""
    host = Host(tmp_path)
    host.map.write_bytes(b"10 7 own\n")
    os.utime(host.map, ns=(0, host.boot_unix_ns + 6_000_000_000))
    host.meet(start_boot_ns=7_000_000_000)
    assert host.refresh() == [b"own"]


def test_a_map_that_lies_there_at_an_exec_is_the_predecessors(tmp_path: Path) -> None:
    """The start of a process stays at an exec, so only the order tells."""
    host = Host(tmp_path)
    host.map.write_bytes(b"10 7 of_program_a\n")
    host.meet(start_boot_ns=0, is_after_exec=True)
    assert host.refresh() == []
    host.map.write_bytes(b"10 7 of_program_b\n")
    assert host.refresh() == [b"of_program_b"]


def test_a_process_whose_map_made_room_has_no_names() -> None:
    program = (
        "import os, sys; from signal import pause;"
        "open(f'/tmp/perf-{os.getpid()}.map', 'w').write('10 7 ' + 'n' * int(sys.argv[1]) + '\\n'); print('ready'); pause()"
    )
    with python(program, "97") as large, python(program, "89") as small:
        keys = [key_of(pid) for pid in (large, small)]
        with closing(ProcessTable(replace(ProcessSettings(), perf_map_total_bytes=200))) as table:
            maps = []
            for key in keys:
                table.see([key])
                maps.append([table.get(one).perf_map for one in keys if one in keys[: len(maps) + 1]])
        for pid in (large, small):
            Path(f"/tmp/perf-{pid}.map").unlink()
    (first,), (before, second) = maps
    assert first is not None and before is None
    assert second is not None and list(second.names) == [b"n" * 89]
