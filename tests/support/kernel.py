# SPDX-License-Identifier: Apache-2.0
"""Whether the real kernel can be asked in tests, and what a profile of it must satisfy."""

import os
from pathlib import Path

from agent.kernel.attempts import has_bcc
from agent.records.drain import CpuDrain


def lacking_for_bpf() -> str:
    """Why BPF programs cannot be loaded here, empty when they can."""
    if os.geteuid() != 0:
        return "needs root"
    if not has_bcc():
        return "needs BCC: apt-get install python3-bpfcc"
    if not Path("/sys/kernel/btf/vmlinux").exists():
        return "needs a kernel with BTF"
    return ""


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
