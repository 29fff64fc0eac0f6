# SPDX-License-Identifier: Apache-2.0
"""What the BPF programs of a process cost, whoever it is, by the kernel's own account: for how long they ran, and how often.

What a program was entered for besides, its dispatch, is not in that account: it is taken as measured once, the same for all. Where the
machine is busy otherwise, programs run for others too; a switch of threads is the measure that this leaves alone.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent.kernel import bpf
from tests.bench.timing import BenchError

DISPATCH_NS = 220
"""Of a raw tracepoint or a tracepoint's program, on the machine that bpf/README.md speaks of."""
_FIELD = re.compile(r"^(prog_id|run_time_ns|run_cnt):\t(\d+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Account:
    """Sums since the programs were loaded, as far as statistics were on; `switches` are those of the whole host, since it is up."""

    run_ns: int
    runs: int
    switches: int

    def since(self, before: "Account") -> "Account":
        """What came in between."""
        return Account(self.run_ns - before.run_ns, self.runs - before.runs, self.switches - before.switches)

    @property
    def cost_s(self) -> float:
        """CPU time, dispatches included."""
        return (self.run_ns + self.runs * DISPATCH_NS) / 1e9

    @property
    def cost_of_switch_s(self) -> float:
        """Of each switch of threads."""
        return self.cost_s / max(1, self.switches)


@contextmanager
def statistics_on() -> Iterator[None]:
    """Have the kernel keep its account; it adds 75 ns to each run, of which a part is in it."""
    descriptor = bpf.enable_run_time_statistics()
    try:
        yield
    finally:
        bpf.close(descriptor)


def account(pid: int) -> Account:
    """Of all programs that a process holds descriptors of; see proc_pid_fdinfo(5). Raises BenchError when it holds none."""
    found: dict[int, tuple[int, int]] = {}
    for entry in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            fields = {name: int(value) for name, value in _FIELD.findall(entry.read_text())}
        except OSError:
            continue  # It was closed meanwhile.
        if "run_cnt" in fields:
            found[fields["prog_id"]] = (fields["run_time_ns"], fields["run_cnt"])
    if not found:
        raise BenchError(f"process {pid} holds no BPF program")
    return Account(sum(run_ns for run_ns, _ in found.values()), sum(runs for _, runs in found.values()), _switches())


def own_account() -> Account:
    """Of this process."""
    return account(os.getpid())


def _switches() -> int:
    found = re.search(r"^ctxt (\d+)$", Path("/proc/stat").read_text(), re.MULTILINE)
    assert found
    return int(found[1])
