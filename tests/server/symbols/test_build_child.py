# SPDX-License-Identifier: Apache-2.0
"""The inside of the jail: hostile files end as one of four words, and the rights are gone."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from agent.process.upload_cut import CutExit, cut
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.symbols.build_result import BuildStatus
from server.symbols.identity import BinaryKey, key_of
from tests.server.symbols.programs import addresses_by_nm, build_here, compile_program, describe, name_at

MUTATIONS = 2000
KERNEL = BinaryKey(pb.BINARY_KIND_KERNEL, pb.BUILD_ID_KIND_GNU, b"\1" * 20, b"")


def test_rights_and_bounds_inside_the_jail() -> None:
    code = """
import json, os, resource
from server.symbols.build_child import enter_jail
enter_jail()
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
limits = {n: resource.getrlimit(getattr(resource, "RLIMIT_" + n))[1] for n in ("AS", "CPU", "FSIZE", "NOFILE", "CORE")}
print(json.dumps([os.getresuid(), os.getgroups(), status["NoNewPrivs"].strip(), status["CapEff"].strip(), limits]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    uids, groups, no_new_privileges, capabilities, limits = json.loads(done.stdout)
    assert no_new_privileges == "1"
    assert limits == {"AS": 1 << 30, "CPU": 60, "FSIZE": 1 << 30, "NOFILE": 16, "CORE": 0}
    if os.getuid() == 0:
        assert (uids, groups, int(capabilities, 16)) == ([65534] * 3, [], 0)


def test_memory_limit_ends_as_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def hungry(_: int) -> None:
        raise MemoryError

    monkeypatch.setattr("server.symbols.build_child.kallsyms_of", hungry)
    source = tmp_path / "kallsyms"
    source.write_bytes(b"0 T f\n7 ! ")
    result, _ = build_here(KERNEL, source, form=symbols_pb2.UPLOAD_FORMAT_KALLSYMS)
    assert (result.status, result.reason) == (BuildStatus.LIMIT, "needs more than 1024 MiB of memory")


def test_kallsyms_name_the_kernel_only(tmp_path: Path) -> None:
    listing = tmp_path / "kallsyms"
    listing.write_bytes(b"0 T _text\n40 t schedule\n80 ! ")
    result, table = build_here(KERNEL, listing, form=symbols_pb2.UPLOAD_FORMAT_KALLSYMS)
    assert result.status == BuildStatus.OK and table is not None and name_at(table, 0x41) == "schedule"
    assert build_here(KERNEL, listing)[0].status == BuildStatus.MALFORMED
    file_key = BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_GNU, b"\1" * 20, b"\2" * 16)
    assert build_here(file_key, listing, form=symbols_pb2.UPLOAD_FORMAT_KALLSYMS)[0].status == BuildStatus.UNSUPPORTED


@pytest.mark.parametrize("options", [("-O1",), ("-O1", "-Wl,-z,noseparate-code"), ("-O1", "-static"), ("-O1", "-Wl,--build-id=none")])
def test_file_whose_text_the_agent_cut_gives_the_same_names(tmp_path: Path, options: tuple[str, ...]) -> None:
    """Its program headers are those of the whole file and point at other bytes now."""
    source = "int work(int x) { return x * 7; } int main(void) { return work(1); }"
    program = compile_program(source, tmp_path / "p", *options)
    uploaded = tmp_path / "cut"
    with program.open("rb") as whole, uploaded.open("wb") as target:
        assert cut(whole.fileno(), target.fileno()) == CutExit.DONE
    assert uploaded.stat().st_size < program.stat().st_size
    key, places = key_of(describe(program)), addresses_by_nm(program)
    result, table = build_here(key, uploaded)
    assert (result.status, result.reason) == (BuildStatus.OK, "")
    _, expected = build_here(key, program)
    assert table is not None and expected is not None
    assert len(table) == len(expected) > 0
    assert [name_at(table, places[name] + 1) for name in ("work", "main")] == ["work", "main"]


def test_mutated_files_always_end_in_one_of_four_words(tmp_path: Path) -> None:
    """C30: byte flips, numbers at the edge, cuts; in this process, so that anything but an answer fails the test."""
    program = compile_program(
        "int work(int x) { return x * 7; } int main(void) { return work(1); }", tmp_path / "p", "-O1", "-s", "-rdynamic"
    )
    whole, key = program.read_bytes(), key_of(describe(program))
    dice = random.Random(7)
    hot = [*range(64), *range(64, 64 + 56 * 13), *range(len(whole) - 64 * 30, len(whole))]
    edges = [0, 1, 0x7F, 0x80, 0xFF]
    ends: dict[str, int] = {}
    path = tmp_path / "mutated"
    for turn in range(MUTATIONS):
        data = bytearray(whole)
        for _ in range(dice.randint(1, 8)):
            place = dice.choice(hot) if turn % 3 else dice.randrange(len(whole))
            width = dice.choice([1, 2, 4, 8])
            data[place : place + width] = bytes([dice.choice(edges) if turn % 2 else dice.randrange(256)]) * width
        if turn % 7 == 0:
            del data[dice.randrange(len(data)) :]
        path.write_bytes(data)
        result, _ = build_here(key, path)
        assert result.reason.split(":")[0] not in {"IndexError", "KeyError", "AttributeError", "AssertionError", "TypeError"}, result
        ends[result.status] = ends.get(result.status, 0) + 1
    assert sum(ends.values()) == MUTATIONS
    assert {"ok", "malformed"} <= set(ends) <= {"ok", "malformed", "unsupported", "limit"}


def test_a_cut_file_ends_well_at_every_length(tmp_path: Path) -> None:
    program = compile_program("int main(void) { return 7; }", tmp_path / "p", "-O1", "-s", "-nostdlib", "-static", "-Wl,-e,main")
    whole, key = program.read_bytes(), key_of(describe(program))
    path = tmp_path / "cut"
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        assert build_here(key, path)[0].status in BuildStatus


def test_the_child_brings_no_more_than_it_needs() -> None:
    """Half of its start was SQL once, for each table that is made."""
    command = [sys.executable, "-c", "import sys, server.symbols.build_child; print(*{name.partition('.')[0] for name in sys.modules})"]
    brought = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "numpy" in brought
    assert not {"sqlalchemy", "flask", "grpc", "alembic", "click"} & set(brought)
