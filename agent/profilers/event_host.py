# SPDX-License-Identifier: Apache-2.0
"""What an event profiler is given, and what it must be: the part that all kinds but cpu have in common."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol, Self

from agent.kernel import program as kernel
from agent.kernel.program import KernelSymbols, Program, ProgramSpec, ProgramType
from agent.records.drain import Stacks
from agent.records.event_drain import EventDrain
from agent.records.limit import Limit

EVENTS = ProgramSpec(
    source="shared/events.h",
    functions={"on_event_unwind": ProgramType.RAW_TRACEPOINT},
    optional={"on_event_look": ProgramType.RAW_TRACEPOINT},
    maps=("event_walks", "event_unwinders", "finishers"),
)
"""Walks the stacks of all event kinds; loaded when there is any."""


class Scratch(IntEnum):
    """Who walks stacks; enum scratch in bpf/shared/scratch.h. Also the place of its finisher."""

    BACK = 1
    WAKER = 2
    SYSCALL = 3
    LOCK = 4
    FUTEX = 5
    HOLDER = 6
    TCP = 7
    HOLD = 8


@dataclass(frozen=True, slots=True)
class EventSettings:
    """What all event kinds are told."""

    window_s: float = 10.0
    """How long the maps must last."""
    threshold_ns: int = 1_000_000
    """Events shorter than this are added up without stacks."""
    most_per_s: int = 20_000
    """Events a second and CPU of one group of programs, above which it runs in duty cycles; 0 for no limit at all, of calls either."""
    calls_share: float = 0.01
    """Share of a CPU that watching system calls may take."""


@dataclass(frozen=True, slots=True)
class EventHost:
    """What an event profiler works with. The program holds the functions and maps of its spec, and those that all share."""

    program: Program
    settings: EventSettings
    now_ns: Callable[[], int]
    symbols: KernelSymbols
    """Names of the kernel's code and data."""

    def install_finisher(self, scratch: Scratch, function: str) -> None:
        """Have `function` called when a walk of `scratch` has ended."""
        key, descriptor = int(scratch).to_bytes(4, "little"), self.program.function(function)
        kernel.update(self.program.map("finishers"), key, descriptor.to_bytes(4, "little"))


@dataclass(frozen=True, slots=True)
class ClosedWindow:
    """A window that has ended: no handler writes its buffer any more."""

    buffer: int
    start_ns: int
    end_ns: int
    stacks: Stacks
    """Of all kinds."""


class EventProfiler(Protocol):
    """One group of programs and the kinds that come of it. For one thread."""

    def before_drain(self) -> None:
        """Called a moment before the window ends: what is put into its buffer now is still in it."""
        ...

    def drain(self, window: ClosedWindow) -> Sequence[EventDrain]:
        """Take out what the window holds: one drain for each kind of the group, even when it is empty."""
        ...

    def tick(self) -> float | None:
        """Called as often as it asks for: seconds until the next call at the latest, None for no matter when."""
        ...

    def limit(self) -> Limit:
        """How much was seen of the last whole window."""
        ...

    def map_bytes(self) -> int:
        """Kernel memory of the maps that it made itself, beside those of the program."""
        ...

    def close(self) -> None:
        """Detach, and let go of what it made. The program is closed by its owner, later."""
        ...


class StackedProfiler:
    """What profilers have in common that keep all they have to close in a stack. A subclass attaches when it is made."""

    def __init__(self, host: EventHost, closing: ExitStack) -> None:
        self._closing = closing

    @classmethod
    def start(cls, host: EventHost) -> Self:
        """Attach; when that fails nothing is left. Raises KernelError when this kernel does not offer what it takes."""
        with ExitStack() as closing:
            profiler = cls(host, closing)
            profiler._closing = closing.pop_all()
        return profiler

    def before_drain(self) -> None:
        """Nothing is to be done."""

    def close(self) -> None:
        """Detach, and let go of what it made."""
        self._closing.close()


@dataclass(frozen=True, slots=True)
class Group:
    """Kinds that come of one source."""

    kinds: tuple[str, ...]
    spec: Callable[[], ProgramSpec]
    start: Callable[[EventHost], EventProfiler]
    """Attaches. Raises KernelError when this kernel does not offer what it takes."""
