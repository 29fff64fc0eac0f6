# SPDX-License-Identifier: Apache-2.0
"""What the CPUs counted apart becomes one row for each process, call and error."""

import numpy as np
import numpy.typing as npt

from agent.profilers.breaker import Share
from agent.profilers.call_budget import CallShares
from agent.profilers.syscall_names import ERROR_SHIFT
from agent.profilers.syscall_rows import CALL_CACHE, CALL_KEY, CALL_SUMS, CallRows, rows_of_calls
from emberwatch.v1 import batch_pb2 as pb

READ, OPENAT_ENOENT = 0, 2 << ERROR_SHIFT | 257


ALL = CallShares(Share(10, 10), Share(10, 10))


def caches(*entries: tuple[int, int, int, int, int, int]) -> npt.NDArray[np.void]:
    """Of two CPUs; entries are (cpu, slot, pid, call, count, ns), of which one call was not measured when ns is 0."""
    made = np.zeros(2, CALL_CACHE)
    for cpu, slot, pid, call, count, ns in entries:
        made["slots"][cpu][slot] = ((1000 + pid, pid, 1, call, cpu), (count, ns, ns, int(not ns), [count if ns else 0] + [0] * 31))
    return made


def values(rows: CallRows, name: str) -> list[int]:
    return next(column.values.tolist() for column in rows.columns if column.name == name)


def test_cpus_and_what_was_spilled_are_added_up() -> None:
    spilled = np.array([(1007, 7, 1, READ, 0)], CALL_KEY), np.array([(2, 50, 40, 0, [0, 2] + [0] * 30)], CALL_SUMS)
    rows = rows_of_calls(caches((0, 3, 7, READ, 23, 100), (1, 9, 7, READ, 7, 300), (1, 10, 7, OPENAT_ENOENT, 1, 0)), [spilled], ALL)
    assert [rows.objects[at] for at in rows.object_of_row] == [b"read", b"openat:ENOENT"]
    assert rows.keys["pid"].tolist() == [7, 7]
    assert rows.keys["start_boot_ns"].tolist() == [1007, 1007]
    assert values(rows, "count") == [32, 1]
    assert values(rows, "ns") == [450, 0]
    assert values(rows, "max_ns") == [300, 0]
    assert values(rows, "observed") == [32, 0]
    assert values(rows, "bucket_00") == [30, 0]
    assert values(rows, "bucket_01") == [2, 0]
    assert [column.name for column in rows.columns][4:] == ["bucket_00", "bucket_01"]
    assert rows.columns[2].merge == pb.MERGE_MAX


def test_sums_are_scaled_and_what_was_observed_is_not() -> None:
    rows = rows_of_calls(caches((0, 0, 7, READ, 23, 100)), (), CallShares(Share(2, 10), Share(2, 10)))
    assert [values(rows, name) for name in ("count", "ns", "max_ns", "observed", "bucket_00")] == [[115], [500], [100], [23], [115]]


def test_times_of_a_part_stand_for_all_of_their_call_and_counts_stay_exact() -> None:
    cpus = caches((0, 0, 7, READ, 23, 100), (0, 1, 7, OPENAT_ENOENT, 7, 50))
    cpus["slots"][1][0] = ((1007, 7, 1, READ, 1), (207, 0, 0, 207, [0] * 32))  # counted on another CPU, and not timed
    rows = rows_of_calls(cpus, (), CallShares(Share(10, 10), Share(1, 10)))
    told = [values(rows, name) for name in ("count", "ns", "max_ns", "observed", "bucket_00")]
    assert told == [[230, 7], [1000, 50], [100, 50], [23, 7], [230, 7]]


def test_calls_of_which_none_was_timed_have_no_time() -> None:
    rows = rows_of_calls(caches((0, 0, 7, READ, 1, 0)), (), CallShares(Share(10, 10), Share(1, 10)))
    assert [values(rows, name) for name in ("count", "ns", "observed")] == [[1], [0], [0]]


def test_nothing_counted_is_no_row() -> None:
    rows = rows_of_calls(caches(), (), ALL)
    assert len(rows.keys) == 0
    assert rows.objects == (b"",)
