# SPDX-License-Identifier: Apache-2.0
"""User stacks of programs without frame pointers on the real kernel, against what is known of the programs."""

import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from agent.records.drain import StackStop
from tests.support.kernel import IS_EMULATED, lacking_for_bpf
from tests.support.language_programs import CPP, compiler
from tests.support.unwind_programs import TRUTH, build, is_true
from tests.support.unwinding import DEADLINE_S, Names, Walk, observing

WHOLE_SHARE = 0.995
FEWEST_SAMPLES = 50
DEEP = ("deep", "g++")
"""Programs that call deeper than stacks are kept."""
OTHER_PROGRAMS = {
    "python3": [sys.executable, "-c", "import json\nwhile True: sorted(json.loads(json.dumps(list(range(1000)))), key=lambda x: -x)"],
    "perl": [
        "perl",
        "-e",
        "while (1) { my %h; $h{$_ % 97} .= join ',', sort { $a <=> $b } ($_, 7, 23) for 0..5000; $s = join ' ', %h; $s =~ s/7/seven/g; }",
    ],
    "openssl": ["openssl", "speed", "-seconds", "60", "sha256"],
    "openssl-aes": ["openssl", "speed", "-seconds", "60", "-evp", "aes-256-gcm"],
    "xz": ["sh", "-c", "exec xz -9 -c < /dev/urandom"],
}


class Observed:
    """Stacks of all programs, taken at the same time."""

    def __init__(self, walks: dict[str, list[Walk]], paths: dict[str, Path]) -> None:
        self.walks = walks
        self.paths = paths

    def frames(self, name: str) -> Iterator[tuple[list[str], Walk]]:
        names = Names(self.paths[name])
        return ((names.frames(walk), walk) for walk in self.walks[name])


@pytest.fixture(scope="module")
def observed(header_directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    if not shutil.which("gcc"):
        pytest.skip("needs gcc")
    directory = tmp_path_factory.mktemp("unwind")
    dynamic, pie, static = (
        build(directory, "modes", "-no-pie"),
        build(directory, "modes_pie", "-pie"),
        build(directory, "modes_static", "-static"),
    )
    commands = {mode: [str(dynamic), mode] for mode in (*TRUTH, "deep")}
    commands |= {"pie": [str(pie), "callback"], "static": [str(static), "callback"]}
    paths = {name: Path(command[0]) for name, command in commands.items()}
    commands |= {name: command for name, command in OTHER_PROGRAMS.items() if shutil.which(command[0])}
    # In a guest g++ would take minutes to compile what is to be watched.
    commands |= {"C++": CPP.ready(directory), "g++": compiler(directory)} if CPP.is_there and not IS_EMULATED else {}
    with ExitStack() as closing:
        pids = {}
        for name, command in commands.items():
            nothing = subprocess.DEVNULL
            process = subprocess.Popen(["nice", "-n", "19", *command], stdin=nothing, stdout=nothing, stderr=nothing)
            closing.callback(process.wait)
            closing.callback(process.kill)
            process.send_signal(signal.SIGSTOP)  # They would take the CPUs from the compiler.
            pids[process.pid] = name
        walks: dict[str, list[Walk]] = {name: [] for name in commands}
        with observing(header_directory, directory, list(pids)) as observer:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)
            observer.meet_until_tables_are_there(pids.keys())
            until = time.monotonic() + DEADLINE_S
            while time.monotonic() < until:
                observer.meet(0.5)
                for walk in observer.window():
                    if walk.pid in pids:  # Others are what a wrapper of a program forked before it became it.
                        walks[pids[walk.pid]].append(walk)
                if all(sum(walk.samples for walk in found) > FEWEST_SAMPLES for found in walks.values()):
                    break
        yield Observed(walks, paths)


@pytest.mark.parametrize("name", [*TRUTH, "pie", "static"])
def test_chains_are_the_truth_frame_for_frame(observed: Observed, name: str) -> None:
    truth = TRUTH[name if name in TRUTH else "callback"]
    frames = [(found if name != "static" else _with_library(found), walk) for found, walk in observed.frames(name)]
    total = sum(walk.samples for _, walk in frames)
    wrong = Counter(
        {" ".join(found): walk.samples for found, walk in frames if walk.stop == StackStop.BOTTOM and not is_true(found, truth)}
    )
    assert total > FEWEST_SAMPLES
    assert not wrong


@pytest.mark.exact
@pytest.mark.parametrize("name", [*TRUTH, "pie", "static", "C++", "g++", *OTHER_PROGRAMS])
def test_stacks_reach_the_bottom(observed: Observed, name: str) -> None:
    if name not in observed.walks:
        pytest.skip(f"needs {name}")
    stops = _stops(observed.walks[name])
    assert stops.total() > FEWEST_SAMPLES
    # Some fall into code without rules, or where libgcc changes stacks for an exception. At the share that is asked for, three standard
    # deviations more are chance; the bench takes a thousand samples of each program (tests/bench/stacks.py).
    lost = stops.total() - stops[StackStop.BOTTOM] - (stops[StackStop.CAP] if name in DEEP else 0)
    asked = stops.total() * (1 - WHOLE_SHARE)
    assert lost <= max(3, asked + 3 * math.sqrt(asked)), stops


def test_nearly_all_stacks_of_each_program_reach_the_bottom(observed: Observed) -> None:
    """Where a clock is emulated there are few samples, and one in a function without rules is soon a percent."""
    stops = {name: _stops(walks) for name, walks in observed.walks.items()}
    lost = {name: found.total() - found[StackStop.BOTTOM] - (found[StackStop.CAP] if name in DEEP else 0) for name, found in stops.items()}
    assert {name: stops[name] for name in stops if lost[name] > max(3, 0.05 * stops[name].total())} == {}


def test_outermost_frame_is_where_the_program_begins(observed: Observed) -> None:
    for name in (*TRUTH, "pie"):
        ends = {frames[-1] for frames, walk in observed.frames(name) if walk.stop == StackStop.BOTTOM}
        assert ends == ({"*"} if name == "thread" else {"_start"})


def test_stack_of_300_is_cut_at_127_and_says_so(observed: Observed) -> None:
    """But for a moment of each descent: of a stack of 129 the 127th frame is main."""
    whole = [(frames, walk.samples) for frames, walk in observed.frames("deep") if walk.stop == StackStop.CAP]
    assert whole and {len(frames) for frames, _ in whole} == {127}
    assert sum(samples for frames, samples in whole if frames[-1] == "descend") >= 0.9 * sum(samples for _, samples in whole)


def test_kernel_walks_the_same_stacks_not_whole(header_directory: Path, tmp_path: Path) -> None:
    if lacking := lacking_for_bpf():
        pytest.skip(lacking)
    program = build(tmp_path, "modes", "-no-pie")
    with subprocess.Popen([str(program), "recursion"]) as process:
        try:
            with observing(header_directory, tmp_path, [process.pid], is_unwinding=False) as observer:
                observer.meet(0.5)
                walks = observer.window()
        finally:
            process.kill()
    names = Names(program)
    assert walks
    assert all(walk.stop == StackStop.NO_TABLE for walk in walks)  # so that nobody takes them for whole
    assert sum(walk.samples for walk in walks if names.frames(walk)[-1] == "_start") < 0.1 * sum(walk.samples for walk in walks)


def _with_library(frames: list[str]) -> list[str]:
    """Of a static binary: functions that are not ours are the C library's."""
    ours = {word for truth in TRUTH.values() for word in truth.split()}
    return [name if name in ours else "*" for name in frames]


def _stops(walks: list[Walk]) -> Counter[StackStop]:
    stops: Counter[StackStop] = Counter()
    for walk in walks:
        stops[walk.stop] += walk.samples
    return stops
