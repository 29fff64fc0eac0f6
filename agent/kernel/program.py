# SPDX-License-Identifier: Apache-2.0
"""The door of this package for profilers: a loaded program, its maps and what it is attached to. They import nothing else of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

from agent.kernel import bpf
from agent.kernel.attempts import require_rights
from agent.kernel.bpf import close, delete, drain, lookup, read_all, update
from agent.kernel.buffers import BUFFERS, BufferedMap, MapShape, flip
from agent.kernel.denylist import denials, refuse_denied
from agent.kernel.iterator import Iterator
from agent.kernel.loader import load
from agent.kernel.perf_event import possible_cpu_count
from agent.kernel.release import running_release
from agent.kernel.ring import RingReader
from agent.kernel.spec import Hazard, LoadedProgram, ProgramSpec, ProgramType
from agent.kernel.symbol_names import KernelSymbols
from agent.kernel.system import require_supported_machine
from agent.kernel.timers import CpuTimers
from agent.kernel.unwind_maps import UNWIND_MAPS, UnwindMaps, Walker

__all__ = [
    "BUFFERS",
    "UNWIND_MAPS",
    "BufferedMap",
    "CpuTimers",
    "Iterator",
    "KernelSymbols",
    "MapShape",
    "Program",
    "ProgramSpec",
    "ProgramType",
    "RingReader",
    "UnwindMaps",
    "Walker",
    "close",
    "delete",
    "drain",
    "flip",
    "lookup",
    "possible_cpu_count",
    "read_all",
    "unwinding_denial",
    "update",
]


def unwinding_denial(release: str | None = None) -> str:
    """Why user stacks must not be walked by tables on this kernel (that reads user memory in a timer's interrupt); empty when they may."""
    entries = denials(frozenset({Hazard.READ_USER_IN_INTERRUPT}), release or running_release())
    return f"{entries[0].effect}: {entries[0].cause} ({entries[0].source})" if entries else ""


class Program:
    """A loaded BPF program with what it is attached to by raw tracepoints."""

    def __init__(self, loaded: LoadedProgram) -> None:
        self._loaded = loaded
        self._attached: list[int] = []

    @classmethod
    def load(cls, spec: ProgramSpec, header_directory: Path, others: Sequence[ProgramSpec] = ()) -> "Program":
        """Raises KernelError with what is wrong and what to do; what keeps one of `others` from running stands in `refusals`."""
        require_supported_machine()
        refuse_denied(spec, running_release())
        require_rights()
        return cls(load(spec, header_directory, others=others))

    @property
    def refusals(self) -> Mapping[str, str]:
        """Sources that could not be loaded, and why."""
        return self._loaded.refusals

    @property
    def loader_peak_bytes(self) -> int:
        return self._loaded.loader_peak_bytes

    def map(self, name: str) -> int:
        """Descriptor of a map."""
        return self._loaded.maps[name]

    def function(self, name: str) -> int:
        """Descriptor of a program."""
        return self._loaded.programs[name]

    def functions(self) -> tuple[str, ...]:
        """What is loaded."""
        return tuple(self._loaded.programs)

    def attach_raw_tracepoint(self, tracepoint: str, function: str) -> None:
        """Until the program is closed."""
        self._attached.append(self.open_raw_tracepoint(tracepoint, function))

    def open_raw_tracepoint(self, tracepoint: str, function: str) -> int:
        """Attach until the descriptor that is returned closes."""
        return bpf.attach_raw_tracepoint(tracepoint, self.function(function))

    def measure_run_time(self) -> Callable[[], None]:
        """Have the kernel measure all its programs until what is returned is called; KernelError when it cannot."""
        return partial(bpf.close, bpf.enable_run_time_statistics())

    def run_time_ns(self) -> int:
        """Time spent in all functions since they were loaded, as far as it was measured."""
        return sum(bpf.program_info(descriptor).run_time_ns for descriptor in self._loaded.programs.values())

    def run_time_of(self, function: str) -> tuple[int, int]:
        """Nanoseconds in a function and how often it ran, as far as it was measured."""
        info = bpf.program_info(self.function(function))
        return info.run_time_ns, info.runs

    def missed_runs(self, functions: Iterable[str]) -> int:
        """How often the kernel left one of these out since they were loaded, for it was running on that CPU already."""
        return sum(bpf.program_info(self.function(function)).missed_runs for function in functions)

    def instructions(self, function: str) -> int:
        """Size after the verifier."""
        return bpf.program_info(self.function(function)).instructions

    def map_bytes(self) -> int:
        """Kernel memory of the maps the loader made."""
        return sum(bpf.map_bytes(descriptor) for descriptor in self._loaded.maps.values())

    def close(self) -> None:
        bpf.close(*self._attached)
        self._attached.clear()
        self._loaded.close()
