# SPDX-License-Identifier: Apache-2.0
"""Samples that reach the bottom, program by program, and the share that `bpf_get_stack` gets whole over the same time.

All programs run at once, on the CPUs there are; g++, which is another process every moment, runs alone and at the agent's own rate.
Debian's musl has neither unwind tables nor frame pointers: a stack is whole as long as musl calls main only. Where it calls back (qsort,
signal handlers, threads) the walk ends there and says "no row": to guess would be wrong now and then.
"""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.bench.report import PER_CENT, Line
from tests.bench.timing import BenchError, Effort
from tests.support.language_programs import CLANG_CPP, CPP, GO, JAVA, NODE, RUST, LanguageProgram, compile_loop, compiler, modes_by
from tests.support.unwind_programs import TRUTH, build
from tests.support.whole_stacks import Wholeness, running, watch

RATE_HZ, AGENT_RATE_HZ = 499, 99
WHOLE_SHARE = 0.995
MOST_S, LOOP_S = 30.0, 40.0
_LANGUAGES: dict[str, LanguageProgram] = {
    "C++": CPP,
    "C++ by clang": CLANG_CPP,
    "Rust": RUST,
    "Go": GO,
    "java -XX:+PreserveFramePointer": JAVA,
    "node": NODE,
}
_COMMANDS = {
    "python3": [sys.executable, "-c", "import json\nwhile True: sorted(json.loads(json.dumps(list(range(1000)))), key=lambda x: -x)"],
    "perl": ["perl", "-e", "while (1) { my %h; $h{$_ % 97} .= join ',', sort { $a <=> $b } ($_, 7, 23) for 0..5000; }"],
    "xz": ["sh", "-c", "exec xz -9 -c < /dev/urandom"],
    "openssl sha256": ["openssl", "speed", "-seconds", "600", "sha256"],
    "openssl aes-256-gcm": ["openssl", "speed", "-seconds", "600", "-evp", "aes-256-gcm"],
    "openssl rsa2048": ["openssl", "speed", "-seconds", "600", "rsa2048"],
}
_DEEP = frozenset({"g++ in one process", "g++ in a loop"})
"""A compiler calls itself deeper than the 127 frames that are kept: such a stack is as whole as it can be."""
_NO_TARGET = frozenset({"C called back by musl"})


def run(effort: Effort) -> Iterator[Line]:
    """All lines of the bench."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with running(_commands(folder), folder) as pids:
            shares = watch(pids, folder, MOST_S * min(1.0, effort.size * 3), rate_hz=RATE_HZ)
        with running({"g++ in a loop": compile_loop(folder)}, folder) as pids:
            shares |= watch(pids, folder, LOOP_S * min(1.0, effort.size * 3), rate_hz=AGENT_RATE_HZ, is_alone=True)
    for what, share in shares.items():
        yield _line(what, share)


def _line(what: str, share: Wholeness) -> Line:
    """The most frequent cause stands beside what is not whole."""
    stops = Counter[str]()
    for walk in share.walks:
        stops[walk.stop.name.lower().replace("_", " ")] += walk.samples
    del stops["bottom"]
    if what in _DEEP:
        del stops["cap"]
    cause = f", else {stops.most_common(1)[0][0]}" if stops else ""
    has_target = what not in _NO_TARGET
    ours = (share.whole + share.capped * (what in _DEEP)) / max(1, share.samples)
    return Line(
        f"whole stacks: {what}, {share.samples:,} samples{cause}",
        PER_CENT.text(ours),
        f"bpf_get_stack {PER_CENT.text(share.kernel_share)}",
        "",
        f">= {WHOLE_SHARE:.1%}" if has_target else "",
        ours >= WHOLE_SHARE if has_target else None,
    )


def _commands(folder: Path) -> dict[str, list[str]]:
    missing = {one.needs for one in _LANGUAGES.values() if not one.is_there}
    missing |= {command for command in ("musl-gcc", "clang", "openssl", "perl", "xz") if shutil.which(command) is None}
    if missing:
        raise BenchError(f"not installed: {', '.join(sorted(missing))}")
    modes, musl = build(folder, "modes", "-no-pie"), modes_by(folder, "musl-gcc", "-static")
    commands = {f"C {mode}": [str(modes), mode] for mode in TRUTH}
    commands |= {
        "C position independent": [str(build(folder, "modes_pie", "-pie")), "callback"],
        "C static": [str(build(folder, "modes_static", "-static")), "callback"],
        "C by clang": [str(modes_by(folder, "clang")), "callback"],
        "C in musl": [str(musl), "chain"],
        "C called back by musl": [str(musl), "callback"],
    }
    commands |= {name: program.ready(folder) for name, program in _LANGUAGES.items()}
    commands["g++ in one process"] = compiler(folder)
    return commands | _COMMANDS
