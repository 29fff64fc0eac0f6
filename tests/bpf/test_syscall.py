# SPDX-License-Identifier: Apache-2.0
"""System calls on the real kernel: what is counted against what a program is known to have made."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from agent.kernel.loader import load
from agent.kernel.source import packaged_source
from agent.profilers import syscall
from agent.profilers.call_budget import CallCosts, Step
from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.suite import Suite
from agent.profilers.syscall import SyscallProfiler
from agent.records.event_drain import BUCKETS, EventDrain
from agent.records.limit import Limit
from emberwatch.v1.marks_pb2 import LossReason
from tests.support.kernel import assert_balanced_events, rows_of_events
from tests.support.programs import Programs

DEADLINE_S = 60


@contextmanager
def suite_of_calls(header_directory: Path, most_per_s: int = 0, pids: frozenset[int] = frozenset()) -> Iterator[Suite]:
    cpu = CpuSettings(header_directory=header_directory, limit_pids=pids)
    with closing(Suite.start(cpu, EventSettings(most_per_s=most_per_s), groups=(syscall.GROUP,))) as suite:
        assert suite.refusals == {}
        yield suite


@pytest.fixture(scope="module")
def all_calls(header_directory: Path) -> Iterator[Suite]:
    """Every call of every process."""
    with suite_of_calls(header_directory) as suite:
        yield suite


@pytest.fixture
def suite(all_calls: Suite) -> Suite:
    """The same, in a window that has just begun."""
    all_calls.drain()
    return all_calls


def calls_and_stacks(suite: Suite) -> tuple[EventDrain, EventDrain]:
    """The drains of both kinds, each of them balanced."""
    calls, stacks = suite.drain().events
    assert (calls.kind, stacks.kind) == ("syscall", "syscall_stack")
    assert_balanced_events(calls)
    assert_balanced_events(stacks)
    return calls, stacks


def profiler_of(suite: Suite) -> SyscallProfiler:
    ((_group, profiler),) = suite._groups
    assert isinstance(profiler, SyscallProfiler)
    return profiler


def let_run(process: "subprocess.Popen[str]") -> str:
    """Have a program do its calls; what it says afterwards."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline()


def test_calls_errors_and_times_are_those_of_the_program(suite: Suite, programs: Programs, tmp_path: Path) -> None:
    with programs.running("calls", str(tmp_path / "file")) as process:
        naps_ns = int(let_run(process))
        rows = rows_of_events(calls_and_stacks(suite)[0], process.pid)
    counts = {name: row["count"] for name, row in rows.items()}
    expected = {b"getpid": 23_000 + 46, b"openat:ENOENT": 230, b"fsync": 23, b"nanosleep": 7}
    assert {name: counts[name] for name in expected} == expected
    for name in expected:
        assert sum(rows[name].get(f"bucket_{bucket:02}", 0) for bucket in range(BUCKETS)) == rows[name]["observed"] == counts[name]
    # A nap is never shorter than was asked, and the program's clock is read outside of the call.
    assert 7 * 20_000_000 <= rows[b"nanosleep"]["ns"] <= naps_ns
    assert 20_000_000 <= rows[b"nanosleep"]["max_ns"] <= rows[b"nanosleep"]["ns"] - 6 * 20_000_000
    assert sum(rows[b"nanosleep"].get(f"bucket_{bucket:02}", 0) for bucket in range(15)) == 0  # bucket 15 begins at 16.4 ms


@pytest.mark.alike
def test_what_the_cache_cannot_hold_is_neither_lost_nor_doubled(suite: Suite, programs: Programs) -> None:
    with programs.running("strange_calls") as process:
        let_run(process)
        rows = rows_of_events(calls_and_stacks(suite)[0], process.pid)
    strange = {name: row["count"] for name, row in rows.items() if name.endswith(b":ENOSYS")}
    assert strange == {b"syscall_%d:ENOSYS" % number: 7 for number in range(600, 800)}


@pytest.mark.alike
def test_unfinished_call_counts_in_the_window_of_its_end(suite: Suite, programs: Programs) -> None:
    with programs.running("strange_calls") as process:
        until_s = time.monotonic() + DEADLINE_S
        while not rows_of_events(calls_and_stacks(suite)[0], process.pid) and time.monotonic() < until_s:
            time.sleep(0.05)  # until it has begun
        while rows_of_events(calls_and_stacks(suite)[0], process.pid) and time.monotonic() < until_s:
            time.sleep(0.1)  # until it waits for its input
        from_ns = time.monotonic_ns()
        time.sleep(0.2)
        least_ns = time.monotonic_ns() - from_ns
        let_run(process)
        rows = rows_of_events(calls_and_stacks(suite)[0], process.pid)
    assert rows[b"read"]["count"] == rows[b"read"]["observed"] >= 1
    assert rows[b"read"]["max_ns"] >= least_ns


@pytest.mark.alike
def test_threads_in_one_place_are_told_apart(suite: Suite, programs: Programs) -> None:
    links = profiler_of(suite)._links
    whole = links.place_mask
    try:
        links.place_mask = 0
        links.write_settings()
        with programs.running("threads_and_children") as process:
            let_run(process)
            calls, _ = calls_and_stacks(suite)
    finally:
        links.place_mask = whole
        links.write_settings()
    naps = rows_of_events(calls, process.pid)[b"nanosleep"]
    assert naps["count"] == 2 * 2300
    # Two threads that take the place in the same nanosecond leave one without its start.
    assert 2 * 2300 - naps["observed"] <= 46


def test_children_and_programs_have_calls_of_their_own(suite: Suite, programs: Programs) -> None:
    with programs.running("threads_and_children") as process:
        let_run(process)
        calls, _ = calls_and_stacks(suite)
    rows = rows_of_events(calls, process.pid)
    assert rows[b"fork"]["count"] == 7
    assert rows[b"getuid"]["count"] == 23
    # The child returns from fork too, but it made no call.
    forks = calls.objects.index(b"fork")
    of_process = calls.keys["pid"] == process.pid
    assert set(calls.keys["pid"][calls.object_of_row == forks].tolist()) == {process.pid}
    # A new program under the same pid has rows of its own.
    naps, uids = calls.objects.index(b"nanosleep"), calls.objects.index(b"getuid")
    programs_of = [set(calls.keys["exec_id"][of_process & (calls.object_of_row == each)].tolist()) for each in (naps, uids)]
    assert [len(each) for each in programs_of] == [1, 1]
    assert programs_of[0] != programs_of[1]


@pytest.mark.alike
def test_calls_that_find_no_room_are_lost_by_reason(header_directory: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(syscall, "SPILLED_ENTRIES", 8)
    monkeypatch.setattr(syscall, "MOST_SPILLED", 8)
    with programs.running("strange_calls") as process, suite_of_calls(header_directory, pids=frozenset({process.pid})) as suite:
        let_run(process)
        calls, _ = calls_and_stacks(suite)
    rows = rows_of_events(calls, process.pid)
    kept = sum(row["count"] for name, row in rows.items() if name.endswith(b":ENOSYS"))
    assert calls.account.lost.keys() == {LossReason.LOSS_REASON_MAP_FULL}
    # Beside the 1,400 the program reads, writes and waits: a few calls.
    assert 1400 <= kept + calls.account.lost[LossReason.LOSS_REASON_MAP_FULL] <= 1420
    assert calls.account.filtered > 0


@pytest.mark.alike
def test_updates_that_the_kernel_refuses_are_counted(header_directory: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a busy bucket does it (-EBUSY), every tenth time or so (A19)."""
    update = "bpf_map_update_elem(inner, &slot->key, &slot->sums, BPF_NOEXIST)"

    def refusing(name: str) -> str:
        text = packaged_source(name)
        return text.replace(update, f"bpf_get_prandom_u32() % 10 ? {update} : -16") if name == "shared/calls.h" else text

    assert update in packaged_source("shared/calls.h")
    monkeypatch.setattr("agent.kernel.program.load", partial(load, read=refusing))
    with programs.running("strange_calls") as process, suite_of_calls(header_directory, pids=frozenset({process.pid})) as suite:
        let_run(process)
        calls, _ = calls_and_stacks(suite)
    kept = sum(row["count"] for name, row in rows_of_events(calls, process.pid).items() if name.endswith(b":ENOSYS"))
    assert calls.account.lost.keys() == {LossReason.LOSS_REASON_MAP_BUSY}
    assert 1400 <= kept + calls.account.lost[LossReason.LOSS_REASON_MAP_BUSY] <= 1420


@contextmanager
def limited_to(header_directory: Path, step: Step, monkeypatch: pytest.MonkeyPatch) -> Iterator[Suite]:
    """Calls so dear that there is no room for more than this step, whatever this machine makes of them."""
    costs = CallCosts(counted_ns=1e-9 if step is Step.COUNTS else 1e9, timed_ns=1e9)
    monkeypatch.setattr(syscall.CostMeter, "look", lambda *_: costs)
    with suite_of_calls(header_directory, most_per_s=20_000) as suite:
        until_s = time.monotonic() + DEADLINE_S
        while profiler_of(suite)._budget.step is not step and time.monotonic() < until_s:
            run_ticks(suite, 0.1)
        yield suite


@pytest.mark.alike
def test_over_the_budget_calls_are_counted_exactly_without_their_times(
    header_directory: Path, programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with limited_to(header_directory, Step.COUNTS, monkeypatch) as suite, programs.running("calls", str(tmp_path / "file")) as process:
        profiler_of(suite)._budget._follow(is_counted=True, is_timed=False)
        calls_and_stacks(suite)
        let_run(process)
        rows = rows_of_events(calls_and_stacks(suite)[0], process.pid)
        assert suite.limited()["syscall"] == Limit(1.0, 0.0)
    expected = {b"getpid": 23_000 + 46, b"openat:ENOENT": 230, b"fsync": 23, b"nanosleep": 7}
    assert {name: rows[name]["count"] for name in expected} == expected
    assert {name: (rows[name]["observed"], rows[name]["ns"]) for name in expected} == dict.fromkeys(expected, (0, 0))


@pytest.mark.exact
@pytest.mark.parametrize("step", [Step.COUNTS, Step.SAMPLES])
def test_over_the_budget_a_part_of_the_calls_stands_for_all(
    header_directory: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch, step: Step
) -> None:
    with limited_to(header_directory, step, monkeypatch) as suite, programs.running("callers") as process:
        calls_and_stacks(suite)
        until_s = time.monotonic() + DEADLINE_S
        rows: dict[bytes, dict[str, int]] = {}
        while rows.get(b"getppid", {}).get("observed", 0) < 100 and time.monotonic() < until_s:
            run_ticks(suite, 2.0)
            rows = rows_of_events(calls_and_stacks(suite)[0], process.pid)
        limit = suite.limited()["syscall"]
    assert (limit.seen < 1) == (step is Step.SAMPLES)
    assert limit.timed < 1
    for name in (b"getpid", b"getppid"):
        row = rows[name]
        assert row["observed"] < row["count"]
        # A bucket is rounded for itself.
        assert sum(row.get(f"bucket_{bucket:02}", 0) for bucket in range(BUCKETS)) == pytest.approx(row["count"], abs=BUCKETS)
        assert row["max_ns"] < row["ns"]
    assert rows[b"getpid"]["count"] / rows[b"getppid"]["count"] == pytest.approx(3, rel=0.2)


@pytest.mark.exact
def test_stacks_lie_where_the_time_is(suite: Suite, programs: Programs) -> None:
    functions = programs.functions("callers")
    with programs.running("callers") as process:
        observed = dict.fromkeys((b"getpid", b"getppid"), 0)
        right = 0
        until_s = time.monotonic() + DEADLINE_S
        while sum(observed.values()) < 100 and time.monotonic() < until_s:
            time.sleep(0.5)
            _, stacks = calls_and_stacks(suite)
            for row in np.flatnonzero(stacks.keys["pid"] == process.pid):
                name = stacks.objects[stacks.object_of_row[row]]
                if name not in observed:
                    continue  # Of its start.
                count = int(stacks.columns[2].values[row])
                observed[name] += count
                function = functions["call_often" if name == b"getpid" else "call_seldom"]
                right += count * any(function.start <= address < function.end for address in _addresses(stacks, row))
    total = sum(observed.values())
    assert total >= 100
    assert right == total
    # Binomial, 100 or more, three in four: 12 points are three standard deviations.
    assert observed[b"getpid"] / total == pytest.approx(0.75, abs=0.15)


def run_ticks(suite: Suite, seconds: float) -> None:
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0:
        wait_s = suite.tick()
        time.sleep(left_s if wait_s is None else min(left_s, wait_s))


def _addresses(drain: EventDrain, row: int) -> list[int]:
    assert drain.stacks is not None
    at = int(np.searchsorted(drain.stacks.hashes, drain.keys["user_stack"][row]))
    addresses: list[int] = drain.stacks.addresses[drain.stacks.bounds[at] : drain.stacks.bounds[at + 1]].tolist()
    return addresses
