# SPDX-License-Identifier: Apache-2.0
"""Programs that nobody has met yet: walked by the tables of their files, as long as the files are what they were."""

import os
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent.kernel.capabilities import LOOKED_UP_FROM
from agent.kernel.headers import kernel_version
from agent.kernel.release import running_release
from agent.records.drain import StackStop
from tests.support.kernel import IS_EMULATED
from tests.support.unwind_programs import build, build_library
from tests.support.unwinding import Observer, Walk, observing

FEWEST_SAMPLES = 60
LOST_SHARE = 0.4 if IS_EMULATED else 0.05
"""Of the samples of a program's first milliseconds some fall into its exec, or into code of the loader that has no rules. In a guest of
tests/kernels an exec takes a good part of the program's life: seen were 15 %."""
PROGRAM_END = 0x2000_0000
"""The program is not position independent: the code in its file lies below, what it makes itself from there on, and all libraries above."""
DEADLINE_S = 60
RUNNING = kernel_version(running_release())

pytestmark = pytest.mark.skipif(
    (RUNNING.version, RUNNING.patch_level) < LOOKED_UP_FROM, reason="needs Linux 6.1: before, mappings cannot be looked up"
)


@contextmanager
def running_again_and_again(directory: Path) -> Iterator[int]:
    """A shell that runs a program for some moments, over and over; gives its pid. Before the next run it writes the program anew when
    there is a file `rewrite`, and removes that."""
    program = build(directory, "modes", "-no-pie")
    libraries = " ".join(str(build_library(directory, name)) for name in ("one", "two"))
    shutil.copy(program, directory / "copy")
    loop = f"while :; do ./modes {libraries} program; [ -e rewrite ] && cat copy > modes && rm rewrite; done"
    with subprocess.Popen(["sh", "-c", loop], cwd=directory, start_new_session=True) as shell:
        try:
            yield shell.pid
        finally:
            os.killpg(shell.pid, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Observed:
    """The agent's side, the shell that starts the programs, and where they lie."""

    observer: Observer
    shell: int
    directory: Path


@pytest.fixture(scope="module")
def observed(header_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    directory = tmp_path_factory.mktemp("unmet")
    with running_again_and_again(directory) as shell, observing(header_directory, directory, [shell]) as observer:
        yield Observed(observer, shell, directory)


def test_new_programs_and_their_libraries_are_walked_before_they_are_met(observed: Observed) -> None:
    observed.observer.meet_until_tables_are_there()
    met = {observed.shell} | {walk.pid for walk in observed.observer.window()}
    stops = _stops(observed.observer, lambda walk: walk.pid not in met)
    lost = {stop: count for stop, count in stops.items() if stop is not StackStop.BOTTOM}
    assert stops[StackStop.BOTTOM] > FEWEST_SAMPLES
    assert sum(lost.values()) <= max(3, LOST_SHARE * stops.total()), stops


def test_table_of_a_file_is_not_used_once_the_file_was_written_to(observed: Observed) -> None:
    """Nothing but its ctime tells: size and content are the same, and so is the inode."""
    observed.observer.meet_until_tables_are_there()
    program, order = observed.directory / "modes", observed.directory / "rewrite"
    inode = program.stat().st_ino
    order.touch()
    until = time.monotonic() + DEADLINE_S
    while order.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert program.stat().st_ino == inode
    observed.observer.drain()  # Samples of the time before; nobody is met by that.
    stops = _stops(observed.observer, lambda walk: walk.addresses[0] < PROGRAM_END, is_once=True)
    assert stops.total() > 0
    assert set(stops) == {StackStop.NO_TABLE}


def _stops(observer: Observer, is_wanted: Callable[[Walk], bool], *, is_once: bool = False) -> Counter[StackStop]:
    """How walks end while nobody is met, until there are enough, or any when the first look at them is to be the only one."""
    stops: Counter[StackStop] = Counter()
    until = time.monotonic() + DEADLINE_S
    met = set[int]()
    while stops[StackStop.BOTTOM] <= FEWEST_SAMPLES and not (is_once and stops) and time.monotonic() < until:
        time.sleep(0.5)
        walks = [walk for walk in observer.window() if walk.pid not in met]
        for walk in filter(is_wanted, walks):
            stops[walk.stop] += walk.samples
        met |= {walk.pid for walk in walks}
    return stops
