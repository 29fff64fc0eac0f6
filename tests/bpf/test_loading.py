# SPDX-License-Identifier: Apache-2.0
"""What the compiler or the verifier refuses comes back as one error, with their last words and nothing on standard error."""

import subprocess
import sys
from pathlib import Path

import pytest

from agent.errors import KernelError
from agent.kernel.loader import load
from agent.kernel.spec import ProgramSpec, ProgramType

SPEC = ProgramSpec(source="bad.bpf.c", functions={"on_event": ProgramType.PERF_EVENT}, maps=())


def test_compiler_error_names_file_and_line(header_directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    files = {
        "bad.bpf.c": '#include "shared/x.h"\nint on_event(void *ctx) { return one(); }\n',
        "shared/x.h": "\nstatic int one( { return 1; }\n",
    }
    with pytest.raises(KernelError, match=r"(?s)compile bad\.bpf\.c for Linux .*shared/x\.h:2"):
        load(SPEC, header_directory, files.__getitem__)
    assert capfd.readouterr() == ("", "")


def test_verifier_error_ends_with_its_log(header_directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = "int on_event(struct bpf_perf_event_data *ctx) { return *(volatile int *)((char *)ctx + 4096); }\n"
    with pytest.raises(KernelError, match=r"(?s)load on_event of bad\.bpf\.c into Linux .*invalid bpf_context access"):
        load(SPEC, header_directory, lambda _: source)
    assert capfd.readouterr() == ("", "")


def test_map_that_is_not_there_is_named(header_directory: Path) -> None:
    spec = ProgramSpec(source="bad.bpf.c", functions={}, maps=("nowhere",))
    with pytest.raises(KernelError, match=r"bad\.bpf\.c has no map nowhere"):
        load(spec, header_directory, lambda _: "int nothing(void *ctx) { return 0; }\n")


def test_without_rights_one_sentence_says_what_to_do(header_directory: Path) -> None:
    script = f"""
from agent.errors import KernelError
from agent.profilers.cpu import *
try:
    CpuProfiler.start(CpuSettings(header_directory=Path({str(header_directory)!r})))
except KernelError as error:
    print(error)
"""
    without = ["setpriv", "--inh-caps=-all", "--bounding-set=-all", sys.executable, "-c", script]
    answer = subprocess.run(without, capture_output=True, text=True, check=True)
    assert answer.stdout == "bpf(2) is not permitted: run as root or with CAP_BPF and CAP_PERFMON\n"
    assert answer.stderr == ""


def test_source_that_does_not_compile_leaves_the_others(header_directory: Path) -> None:
    files = {
        "good.bpf.c": "BPF_HASH(numbers, u32, u64, 8);\nint on_good(void *ctx) { return 0; }\n",
        "broken.bpf.c": "int on_broken(void *ctx) { return nothing; }\n",
        "refused.bpf.c": "int on_refused(struct bpf_perf_event_data *ctx) { return *(volatile int *)((char *)ctx + 4096); }\n",
        "other.bpf.c": "BPF_HASH(others, u32, u64, 8);\nint on_other(void *ctx) { u32 one = 1; return numbers.lookup(&one) ? SIZE : 0; }\n",
    }
    maps = {"good": ("numbers",), "other": ("others",)}
    specs = {
        name: ProgramSpec(f"{name}.bpf.c", {f"on_{name}": ProgramType.PERF_EVENT}, maps.get(name, ()), defines={"SIZE": 3})
        for name in ("good", "broken", "refused", "other")
    }
    loaded = load(specs["good"], header_directory, files.__getitem__, [specs["broken"], specs["refused"], specs["other"]])
    try:
        assert (set(loaded.programs), set(loaded.maps)) == ({"on_good", "on_other"}, {"numbers", "others"})
        assert set(loaded.refusals) == {"broken.bpf.c", "refused.bpf.c"}
        assert "undeclared identifier" in loaded.refusals["broken.bpf.c"]
        assert "invalid bpf_context access" in loaded.refusals["refused.bpf.c"]
    finally:
        loaded.close()
