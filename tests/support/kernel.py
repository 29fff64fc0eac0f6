# SPDX-License-Identifier: Apache-2.0
"""Whether the real kernel can be asked in tests, and what a profile of it must satisfy."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from agent.kernel.attempts import has_bcc
from agent.profilers.event_host import Group
from agent.records.drain import CpuDrain
from agent.records.event_drain import EventDrain
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.marks_pb2 import LossReason

IS_EMULATED = "EMBERWATCH_TESTS_EMULATED" in os.environ
"""In a guest of tests/kernels: slow, and free to be changed."""


def lacking_for_bpf() -> str:
    """Why BPF programs cannot be loaded here, empty when they can."""
    if os.geteuid() != 0:
        return "needs root"
    if not has_bcc():
        return "needs BCC: apt-get install python3-bpfcc"
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return "needs a kernel with BTF"
    return ""


def before_6_15(group: Group) -> Group:
    """The same as kernels load it where nothing is called when a thread is back on a CPU."""
    spec = group.spec()
    return replace(group, spec=lambda: replace(spec, defines={**spec.defines, "STACK_AS_IT_LEAVES": 1}, optional={}))


def assert_conserved(drain: CpuDrain) -> None:
    """expected = stored + idle + filtered + sum(lost), and no two keys alike."""
    stored = int(drain.counts.sum())
    ticks = drain.ticks
    assert ticks.expected == stored + ticks.idle + ticks.filtered + sum(ticks.lost.values())
    assert len({key.tobytes() for key in drain.keys}) == len(drain.keys)


def own_kernel_objects() -> dict[str, set[int]]:
    """Ids of the BPF programs and maps that this process holds descriptors of; see proc_pid_fdinfo(5)."""
    found: dict[str, set[int]] = {"prog_id": set(), "map_id": set()}
    for entry in Path("/proc/self/fdinfo").iterdir():
        try:
            lines = entry.read_text().splitlines()
        except OSError:
            continue  # The descriptor of this very listing.
        for line in lines:
            name, _, value = line.partition(":")
            if name in found:
                found[name].add(int(value))
    return found


def assert_balanced_events(drain: EventDrain) -> None:
    """expected = stored + filtered + sum(lost), in the unit of the first column, and nothing is unexplained."""
    account = drain.account
    assert account.expected == int(drain.columns[0].values.sum()) + account.filtered + sum(account.lost.values())
    assert LossReason.LOSS_REASON_UNEXPLAINED not in account.lost


def rows_of_events(drain: EventDrain, pid: int) -> dict[bytes, dict[str, int]]:
    """What a drain holds of one process: values by object and column, added up over its rows (the largest of max_ns)."""
    rows: dict[bytes, dict[str, int]] = {}
    of_row = np.zeros(len(drain), np.int64) if drain.object_of_row is None else drain.object_of_row
    for row in np.flatnonzero(drain.keys["pid"] == pid):
        values = rows.setdefault(drain.objects[of_row[row]], {})
        for column in drain.columns:
            value = int(column.values[row])
            before = values.get(column.name, 0)
            values[column.name] = max(before, value) if column.merge == pb.MERGE_MAX else before + value
    return rows
