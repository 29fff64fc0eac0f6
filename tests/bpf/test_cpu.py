# SPDX-License-Identifier: Apache-2.0
"""The on-CPU program on the real kernel: what is measured against what is known of the program measured."""

import errno
import os
import select
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from agent.errors import KernelError
from agent.kernel import bpf
from agent.kernel.bpf import Command, ids
from agent.kernel.mounts import CGROUP2, find_mount
from agent.profilers.cpu import SEEN_ENTRIES, CpuProfiler, CpuSettings
from agent.records.drain import STACK_MAP_FULL, CpuDrain
from agent.records.process import ProcessKey
from emberwatch.v1 import marks_pb2 as marks
from tests.support.kernel import assert_conserved, own_kernel_objects
from tests.support.programs import Programs

RATE_HZ = 997
DEADLINE_S = 60


@contextmanager
def profiling(header_directory: Path, **settings: object) -> Iterator[CpuProfiler]:
    everything = {"rate_hz": RATE_HZ, "header_directory": header_directory, **settings}
    with closing(CpuProfiler.start(CpuSettings(**everything))) as profiler:  # type: ignore[arg-type]
        yield profiler


@pytest.fixture(scope="module")
def everything(header_directory: Path) -> Iterator[CpuProfiler]:
    """All processes."""
    with profiling(header_directory) as profiler:
        yield profiler


def samples_of(profiler: CpuProfiler, pid: int) -> CpuDrain:
    """A window of a process that is past its start, and nothing else."""
    until = time.monotonic() + DEADLINE_S
    while not int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11]) and time.monotonic() < until:
        time.sleep(0.01)  # until it has used 10 ms of CPU
    profiler.drain()
    for drain in drains(profiler):
        rows = np.flatnonzero(drain.keys["pid"] == pid)
        if len(rows):
            return replace(drain, keys=drain.keys[rows], counts=drain.counts[rows])
    raise AssertionError


def drains(profiler: CpuProfiler, window_s: float = 0.5) -> Iterator[CpuDrain]:
    """Window after window, each checked, until the deadline."""
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:
        time.sleep(window_s)
        drain = profiler.drain()
        assert_conserved(drain)
        yield drain
    pytest.fail("too few samples: the machine is too busy")


def stack(drain: CpuDrain, stack_hash: int) -> list[int]:
    at = int(np.searchsorted(drain.stacks.hashes, np.uint64(stack_hash)))
    assert drain.stacks.hashes[at] == stack_hash
    addresses: list[int] = drain.stacks.addresses[drain.stacks.bounds[at] : drain.stacks.bounds[at + 1]].tolist()
    return addresses


@pytest.mark.exact
def test_shares_are_within_3_points_of_the_truth(header_directory: Path, programs: Programs) -> None:
    functions = [programs.functions("shares")[name] for name in ("busy_seventy", "busy_twenty", "busy_ten")]
    everything = programs.functions("shares").values()
    samples = dict.fromkeys((f.name for f in functions), 0)
    total = unattributed = 0
    with programs.running("shares") as process, profiling(header_directory, limit_pids=frozenset({process.pid})) as profiler:
        for drain in drains(profiler):
            for key, count in zip(drain.keys, drain.counts.tolist(), strict=True):
                assert (key["pid"], key["user_error"], key["kernel_error"], key["comm"]) == (process.pid, 0, 0, b"shares")
                addresses = stack(drain, int(key["user_stack"]))
                total += count
                for function in functions:
                    samples[function.name] += count * any(function.start <= a < function.end for a in addresses)
                unattributed += count * (not any(f.start <= a < f.end for a in addresses for f in everything))
            if total >= 2000:
                break
    # The loops take nearly all of the time; what is left over is rand() and main itself, a fraction of a percent.
    assert unattributed <= total * 0.005
    for function, share in zip(functions, (0.7, 0.2, 0.1), strict=True):
        assert samples[function.name] / total == pytest.approx(share, abs=0.03)


def test_kernel_part_is_empty_and_no_error_in_user_mode(everything: CpuProfiler, programs: Programs) -> None:
    with programs.running("spin") as process:
        drain = samples_of(everything, process.pid)
    in_user_mode = drain.counts[drain.keys["kernel_stack"] == 0].sum()
    assert in_user_mode > 0.9 * drain.counts.sum() > 0
    assert not drain.keys["kernel_error"].any()
    assert not drain.keys["user_error"].any()


def test_samples_whose_stack_finds_no_room_are_counted_and_kept(header_directory: Path, programs: Programs) -> None:
    with programs.running("many_stacks") as process:
        limits = {"limit_pids": frozenset({process.pid}), "stacks_entries": 8}
        with profiling(header_directory, **limits) as profiler:
            drain = next(drains(profiler, 1.0))
            injected = profiler.stacks_refused
    lost = drain.counts[drain.keys["user_error"] == STACK_MAP_FULL].sum() + drain.counts[drain.keys["kernel_error"] == STACK_MAP_FULL].sum()
    kept = drain.counts[drain.keys["user_error"] == 0].sum()
    assert len(drain.stacks.hashes) == 8
    assert lost == injected > 0
    assert drain.counts.sum() == kept + drain.counts[drain.keys["user_error"] == STACK_MAP_FULL].sum()
    assert not drain.keys["user_stack"][drain.keys["user_error"] == STACK_MAP_FULL].any()


def test_samples_that_find_no_room_in_the_counts_are_lost_by_reason(header_directory: Path, programs: Programs) -> None:
    with programs.running("many_stacks") as process:
        limits = {"limit_pids": frozenset({process.pid}), "counts_entries": 8}
        with profiling(header_directory, **limits) as profiler:
            drain = next(drains(profiler, 1.0))
    assert len(drain.keys) == 8
    assert drain.ticks.lost[marks.LOSS_REASON_MAP_FULL] > 0
    assert marks.LOSS_REASON_MAP_BUSY not in drain.ticks.lost


def test_maps_that_were_too_small_grow(header_directory: Path, programs: Programs) -> None:
    with programs.running("many_stacks") as process:
        limits = {"limit_pids": frozenset({process.pid}), "counts_entries": 8, "stacks_entries": 8, "can_grow": True}
        with profiling(header_directory, **limits) as profiler:
            for number, drain in enumerate(drains(profiler)):
                is_lossless = marks.LOSS_REASON_MAP_FULL not in drain.ticks.lost and not (drain.keys["user_error"] == STACK_MAP_FULL).any()
                if number >= 2 and is_lossless and len(drain.keys) > 8:
                    break


def test_recursion_of_130_is_cut_at_127_and_says_so(everything: CpuProfiler, programs: Programs) -> None:
    with programs.running("recursion", "130") as process:
        drain = samples_of(everything, process.pid)
    length, is_truncated = below_the_descent(drain)
    assert (length, is_truncated) == (127, True)


def test_shallow_stack_is_whole(everything: CpuProfiler, programs: Programs) -> None:
    with programs.running("recursion", "40") as process:
        drain = samples_of(everything, process.pid)
    descend = programs.functions("recursion")["descend"]
    _, is_truncated = below_the_descent(drain)
    addresses = stack(drain, int(drain.keys["user_stack"][drain.counts.argmax()]))
    assert not is_truncated
    assert sum(descend.start <= address < descend.end for address in addresses) == 40


def below_the_descent(drain: CpuDrain) -> tuple[int, bool]:
    """Frames of nearly all samples, and whether they are cut: a slow host meets the program on its way down now and then."""
    place = np.searchsorted(drain.stacks.hashes, drain.keys["user_stack"])
    lengths, is_truncated = np.diff(drain.stacks.bounds)[place], drain.stacks.is_truncated[place]
    most = int(drain.counts.argmax())
    is_alike = (lengths == lengths[most]) & (is_truncated == is_truncated[most])
    assert drain.counts[is_alike].sum() >= 0.9 * drain.counts.sum() > 0
    return int(lengths[most]), bool(is_truncated[most])


@pytest.mark.exact
def test_new_process_is_signalled_while_its_window_lasts(everything: CpuProfiler, programs: Programs) -> None:
    programs.path("spin")
    everything.new_processes()
    with programs.running("spin") as process:
        key = _wait_for(everything, process.pid)
        start_ticks = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
    assert key.start_boot_ns // 10_000_000 == start_ticks


@pytest.mark.exact
def test_processes_are_told_of_again_when_the_list_of_the_seen_was_full(header_directory: Path, programs: Programs) -> None:
    with profiling(header_directory) as profiler:
        for number in range(SEEN_ENTRIES + 1):  # Those that the ring had no room for count nowhere.
            key = struct.pack("<QII", number, 1 << 30, 0)
            try:
                bpf.update(profiler._program.map("seen"), key, bytes(8))
            except OSError as error:
                assert error.errno == errno.E2BIG
                break
        with programs.running("spin") as process:
            until = time.monotonic() + DEADLINE_S
            told = set[int]()
            while process.pid not in told and time.monotonic() < until:
                time.sleep(0.1)
                profiler.drain()
                told |= {key.pid for key in profiler.new_processes().sampled}
    assert process.pid in told


def test_exec_makes_another_process_of_the_same_pid(everything: CpuProfiler, programs: Programs) -> None:
    programs.path("spin")
    everything.new_processes()
    with programs.running("spin", "exec") as process:
        before = _wait_for(everything, process.pid)
        after = _wait_for(everything, process.pid, but=before)
    assert before.start_boot_ns == after.start_boot_ns
    assert before.exec_id < after.exec_id


def test_program_is_told_of_at_its_exec_before_any_sample(header_directory: Path) -> None:
    with profiling(header_directory, rate_hz=1) as profiler, subprocess.Popen(["sleep", "60"]) as process:
        try:
            begun = set[int]()
            until = time.monotonic() + DEADLINE_S
            while process.pid not in begun and time.monotonic() < until:
                select.select([profiler.wake_fd], [], [], 1.0)
                begun |= {key.pid for key in profiler.new_processes().begun}
        finally:
            process.kill()
    assert process.pid in begun


def _wait_for(profiler: CpuProfiler, pid: int, but: ProcessKey | None = None) -> ProcessKey:
    """The first signal of this pid that is not `but`; nothing is drained meanwhile."""
    start = time.monotonic()
    while time.monotonic() < start + DEADLINE_S:
        select.select([profiler.wake_fd], [], [], 1.0)
        for key in profiler.new_processes().sampled:
            if key.pid == pid and key != but and (but is not None or key.exec_id):
                return key
    raise AssertionError(f"process {pid} was not signalled")


def test_process_tree_is_followed_through_forks_and_nothing_else_is_seen(header_directory: Path, programs: Programs) -> None:
    with (
        programs.running("spin"),
        programs.running("forks") as root,
        profiling(header_directory, limit_pids=frozenset({root.pid})) as profiler,
    ):
        tree = {root.pid, *_fork(root)}
        try:
            seen: set[int] = set()
            for drain in drains(profiler):
                seen |= set(drain.keys["pid"].tolist())
                assert drain.ticks.filtered > 0
                if seen == tree:
                    break
        finally:
            for pid in tree - {root.pid}:
                os.kill(pid, 9)
    assert len(tree) == 3


def _fork(root: "subprocess.Popen[str]") -> list[int]:
    """Have the program fork; the pids of its child and grandchild."""
    assert root.stdin and root.stdout
    root.stdin.write("\n")
    root.stdin.flush()
    return [int(pid) for pid in root.stdout.readline().split()]


def test_process_that_is_not_there_cannot_be_followed(header_directory: Path) -> None:
    with pytest.raises(KernelError, match="there is no process 4194305"), profiling(header_directory, limit_pids=frozenset({4194305})):
        pass


def test_cgroup_limits_the_profile(header_directory: Path, programs: Programs) -> None:
    root = find_mount(CGROUP2.kind)
    if root is None:
        pytest.skip("needs cgroup v2")
    group = root / f"emberwatch-test-{os.getpid()}"
    group.mkdir()
    try:
        with programs.running("spin") as inside, programs.running("spin"):
            (group / "cgroup.procs").write_text(str(inside.pid))
            with profiling(header_directory, cgroup=group) as profiler:
                drain = next(drains(profiler))
        assert set(drain.keys["pid"].tolist()) == {inside.pid}
        assert drain.ticks.filtered > 0
    finally:
        for _ in range(50):  # The kernel lets go of the last process a moment after it was reaped.
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.02)


@pytest.mark.exact
def test_expected_follows_from_the_clock(everything: CpuProfiler) -> None:
    found = [next(drains(everything)) for _ in range(3)]
    cpus = len(os.sched_getaffinity(0))
    seconds = (found[-1].end_ns - found[0].start_ns) / 1e9
    # Two periods of grace per CPU: a tick just due may still arrive.
    assert sum(d.ticks.expected for d in found) == pytest.approx(seconds * cpus * 1e9 / found[0].period_ns, abs=3 * cpus)
    assert all(later.start_ns == earlier.end_ns for earlier, later in pairwise(found))
    assert all((d.keys["pid"] != 0).all() for d in found), "what interrupts an idle CPU is idle, never a process called swapper"


def test_nothing_is_left_in_the_kernel_after_close(header_directory: Path) -> None:
    descriptors, before = len(list(Path("/proc/self/fd").iterdir())), own_kernel_objects()
    with profiling(header_directory) as profiler:
        objects = {name: found - before[name] for name, found in own_kernel_objects().items()}
        assert profiler.map_bytes() > 0
        assert profiler.loader_peak_bytes > 30 << 20
    assert len(objects["prog_id"]) >= 4 and len(objects["map_id"]) >= 10
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until:  # They are freed after a grace period.
        left = objects["prog_id"] & ids(Command.PROG_GET_NEXT_ID), objects["map_id"] & ids(Command.MAP_GET_NEXT_ID)
        if not any(left):
            break
        time.sleep(0.05)
    assert left == (set(), set())
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


@pytest.mark.exact
def test_run_time_in_the_kernel_is_measured(header_directory: Path, programs: Programs) -> None:
    with programs.running("spin"), profiling(header_directory) as profiler:
        drain = next(drains(profiler))
        assert 0 < profiler.bpf_run_time_ns() < 100_000 * drain.ticks.expected
