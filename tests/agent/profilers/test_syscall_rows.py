# SPDX-License-Identifier: Apache-2.0
"""What the CPUs counted apart becomes one row for each process, call and error."""

import numpy as np
import numpy.typing as npt

from agent.profilers.syscall_names import ERROR_SHIFT
from agent.profilers.syscall_rows import CALL_CACHE, CALL_KEY, CALL_SUMS, CallRows, rows_of_calls
from emberwatch.v1 import batch_pb2 as pb

READ, OPENAT_ENOENT = 0, 2 << ERROR_SHIFT | 257


def same(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return values


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
    rows = rows_of_calls(caches((0, 3, 7, READ, 23, 100), (1, 9, 7, READ, 7, 300), (1, 10, 7, OPENAT_ENOENT, 1, 0)), [spilled], same)
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
    rows = rows_of_calls(caches((0, 0, 7, READ, 23, 100)), (), lambda values: values * np.uint64(5))
    assert [values(rows, name) for name in ("count", "ns", "max_ns", "observed", "bucket_00")] == [[115], [500], [100], [23], [115]]


def test_nothing_counted_is_no_row() -> None:
    rows = rows_of_calls(caches(), (), same)
    assert len(rows.keys) == 0
    assert rows.objects == (b"",)
