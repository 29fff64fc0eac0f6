# SPDX-License-Identifier: Apache-2.0
"""What share of a program's samples reach the bottom, by tables and by the kernel's own walk, over the same time."""

import os
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from agent.records.drain import StackStop
from tests.support.unwinding import Observer, Walk, meet_all, observing

Place = tuple[bytes, int]
"""Path of a file and offset in it."""


@dataclass(slots=True)
class Wholeness:
    """Samples of one program."""

    samples: int = 0
    whole: int = 0
    capped: int = 0
    """Deeper than stacks are kept."""
    kernel_samples: int = 0
    kernel_whole: int = 0
    """Of those that the kernel walked: they end where a whole one did."""
    walks: list[Walk] = field(default_factory=list)

    @property
    def kernel_share(self) -> float:
        return self.kernel_whole / max(1, self.kernel_samples)


@contextmanager
def running(commands: Mapping[str, Sequence[str]], folder: Path) -> Iterator[dict[int, str]]:
    """Programs that stand still until they are continued: they would take the CPUs from the compiler. Gives their names by pid."""
    nothing = subprocess.DEVNULL
    with ExitStack() as closing:
        pids = {}
        for name, command in commands.items():
            nice = ["nice", "-n", "19", *command]
            process = subprocess.Popen(nice, cwd=folder, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)
            closing.callback(process.wait)
            closing.callback(os.killpg, process.pid, signal.SIGKILL)
            process.send_signal(signal.SIGSTOP)
            pids[process.pid] = name
        yield pids


def watch(pids: Mapping[int, str], folder: Path, seconds: float, *, rate_hz: int, is_alone: bool = False) -> dict[str, Wholeness]:
    """Walk the stacks of running programs both ways at once. With `is_alone` all that one program starts counts as it."""
    found = {name: Wholeness() for name in pids.values()}
    everything = next(iter(pids.values()))
    with (
        observing(folder, folder, list(pids), rate_hz=rate_hz) as ours,
        observing(folder, folder, list(pids), rate_hz=rate_hz, is_unwinding=False) as theirs,
    ):
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        _settle((ours, theirs), set() if is_alone else set(pids))
        until = time.monotonic() + seconds
        kernel_walks: dict[str, list[Walk]] = {name: [] for name in found}
        while time.monotonic() < until:
            meet_all((ours, theirs), min(2.0, seconds))
            for walk in ours.window():
                found[everything if is_alone else pids.get(walk.pid, everything)].walks.append(walk)
            for walk in theirs.window():
                kernel_walks[everything if is_alone else pids.get(walk.pid, everything)].append(walk)
    for name, one in found.items():
        _count(one, kernel_walks[name])
    return found


def _settle(observers: tuple[Observer, Observer], pids: set[int]) -> None:
    """Until our side has the tables of all programs; the other side's samples of that time are dropped with ours."""
    ours, theirs = observers
    ours.meet_until_tables_are_there(pids)
    theirs.window()


def _count(found: Wholeness, kernel_walks: Iterable[Walk]) -> None:
    bottoms = set[Place | None]()
    for walk in found.walks:
        found.samples += walk.samples
        found.capped += walk.samples * (walk.stop is StackStop.CAP)
        if walk.stop is StackStop.BOTTOM:
            found.whole += walk.samples
            bottoms.add(_place(walk, walk.addresses[-1]))
    bottoms.discard(None)
    for walk in kernel_walks:
        found.kernel_samples += walk.samples
        found.kernel_whole += walk.samples * (_place(walk, walk.addresses[-1]) in bottoms)


def _place(walk: Walk, addr: int) -> Place | None:
    for mapped in walk.process.mappings:
        if mapped.mapping.start <= addr < mapped.mapping.end:
            return mapped.mapping.path, addr - mapped.mapping.start + mapped.mapping.file_offset
    return None
