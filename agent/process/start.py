# SPDX-License-Identifier: Apache-2.0
"""Reads /proc/PID/stat (proc_pid_stat(5)): which process it is, whether it lives, and which program image it runs.

The name in brackets may hold anything, ")" and newlines included: fields are counted after the last ")".
/proc does not show self_exec_id. That a process has become another program is seen by its image: the addresses of its code and of the
start of its stack, which every exec chooses anew, and the device and inode of its exe.
"""

from dataclasses import dataclass

USER_HZ = 100
"""Clock ticks a second in /proc; a constant of the kernel's ABI on every architecture Linux 5.10 has."""
_TICK_NS = 1_000_000_000 // USER_HZ
_PF_KTHREAD = 0x0020_0000
_STATES_OF_THE_DEAD = b"ZXx"
# Places after the last ")", counted from 0; proc_pid_stat(5) counts the state as field 3.
_STATE, _FLAGS, _START, _CODE_START, _STACK_START = 0, 6, 19, 23, 25


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """What one stat line says."""

    comm: bytes
    state: bytes
    """One letter."""
    flags: int
    start_ticks: int
    """Since boot."""
    code_start: int
    """0 when hidden, as is stack_start."""
    stack_start: int

    @property
    def is_kernel_thread(self) -> bool:
        """PF_KTHREAD is set."""
        return bool(self.flags & _PF_KTHREAD)

    @property
    def is_dead(self) -> bool:
        """The main thread is gone; others may run on."""
        return self.state in _STATES_OF_THE_DEAD


def parse_stat(raw: bytes) -> ProcessStat | None:
    """Parse a stat line; None when it is not one."""
    before, _, after = raw.rpartition(b")")
    fields = after.split()
    if len(fields) <= _STACK_START:
        return None
    try:
        numbers = [int(fields[place]) for place in (_FLAGS, _START, _CODE_START, _STACK_START)]
    except ValueError:
        return None
    return ProcessStat(before.partition(b"(")[2], fields[_STATE], *numbers)


def is_start(stat: ProcessStat, start_boot_ns: int) -> bool:
    """Whether the process of `stat` started at `start_boot_ns` (group_leader->start_boottime), as exactly as /proc tells (10 ms)."""
    return stat.start_ticks == start_boot_ns // _TICK_NS
