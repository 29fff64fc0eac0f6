# SPDX-License-Identifier: Apache-2.0
"""From a real program to a name: found here, uploaded, refused, asked for again."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.errors import ServerError
from server.profile.names import FrameColumns
from server.store.protocol import BinaryInfo
from server.symbols.build_result import Quality
from server.symbols.debuginfod import parse_upstreams
from server.symbols.elf_probe import probe
from server.symbols.fetching import AGENTS_FIRST_S
from server.symbols.identity import key_of
from server.symbols.ledger import NameState
from server.symbols.namer import NEWS_S, RETRY_S, Namer
from server.symbols.settings import SymbolSettings
from tests.server.symbols.conftest import Clock
from tests.server.symbols.programs import addresses_by_nm, compile_program, describe, proto_id, run_tool
from tests.support.upstreams import Upstreams, until

WAIT_S = 300.0
SOURCE = "__attribute__((noinline)) int work(int x) { return x * 7; } int main(void) { return work(1); }"


@pytest.fixture
def remote(tmp_path: Path, clock: Clock) -> Iterator[Namer]:
    """A server that shares no disk with its agents."""
    namer = Namer(SymbolSettings(tmp_path / "symbols", local_files=False, free_min_bytes=0), clock)
    yield namer
    namer.close()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return compile_program(SOURCE, tmp_path / "app", "-O1")


def upload(
    namer: Namer, binary: BinaryInfo, data: bytes, form: symbols_pb2.UploadFormat = symbols_pb2.UPLOAD_FORMAT_ELF
) -> symbols_pb2.UploadResponse:
    request = symbols_pb2.UploadRequest(
        kind=pb.BinaryKind.Name(pb.BinaryKind.ValueType(binary.kind)),
        id=proto_id(key_of(binary)),
        format=form,
        size_bytes=len(data),
        upload_hash=hashlib.blake2b(data, digest_size=16).digest(),
    )
    for place in range(0, len(data), 1 << 20):
        request.offset, request.data = place, data[place : place + (1 << 20)]
        answer = namer.upload(request)
        if answer.status != symbols_pb2.UPLOAD_STATUS_CONTINUE:
            break
    return answer


def name_of(namer: Namer, binary: BinaryInfo, address: int) -> str:
    """Name of one leaf frame at an address of the file (an offset, for the kernel)."""
    code = [s for s in binary.segments if s[4] & 1] or [(0, 0, 0, 0, 0)]
    kind = pb.PLACE_KIND_KERNEL if binary.kind == pb.BINARY_KIND_KERNEL else pb.PLACE_KIND_FILE
    offset = address - code[0][1] + code[0][0]
    refs, offsets = np.array([0, binary.row_id], np.uint32), np.array([0, offset], np.uint64)
    frames = FrameColumns(np.array([0, kind], np.uint8), refs, offsets, np.zeros(2, np.uint8))

    def binaries(row_ids: Sequence[int]) -> list[BinaryInfo]:
        assert list(row_ids) == [binary.row_id]
        return [binary]

    names = namer.names(frames, binaries, [b""], "checkout")
    return names.functions.names[int(names.function[1])]


def test_file_on_this_host_is_named_without_being_asked_for(tmp_path: Path, program: Path) -> None:
    namer = Namer(SymbolSettings(tmp_path / "symbols", debug_roots=()))
    binary, places = describe(program), addresses_by_nm(program)
    assert not namer.wanted(binary)
    assert name_of(namer, binary, places["work"]).startswith("[unknown] app+0x")
    before = namer.generation
    assert namer.wait_idle(WAIT_S)
    assert namer.state(binary).state == NameState.NAMED
    assert namer.generation > before
    assert name_of(namer, binary, places["work"]) == "work"
    namer.close()
    again = Namer(SymbolSettings(tmp_path / "symbols", debug_roots=()))
    program.unlink()
    assert name_of(again, binary, places["main"]) == "main"
    again.close()


def test_file_that_is_not_here_is_asked_for(tmp_path: Path, program: Path) -> None:
    namer = Namer(SymbolSettings(tmp_path / "symbols", debug_roots=()))
    binary = replace(describe(program), content_hash=b"\7" * 16)
    assert not namer.wanted(binary)
    assert namer.wait_idle(WAIT_S)
    assert namer.wanted(binary)
    namer.close()


def test_upload_names_the_past(remote: Namer, program: Path) -> None:
    binary, places = describe(program), addresses_by_nm(program)
    assert remote.wanted(binary)
    assert name_of(remote, binary, places["work"]).startswith("[unknown] app+0x")
    assert upload(remote, binary, program.read_bytes()).status == symbols_pb2.UPLOAD_STATUS_DONE
    assert remote.wait_idle(WAIT_S)
    assert name_of(remote, binary, places["work"]) == "work"
    assert not remote.wanted(binary)
    answer = upload(remote, binary, program.read_bytes())
    assert (answer.status, answer.reason) == (symbols_pb2.UPLOAD_STATUS_NOT_WANTED, "its names are known")


def test_kernel_names_by_kallsyms(remote: Namer) -> None:
    kernel = BinaryInfo(3, pb.BINARY_KIND_KERNEL, pb.BUILD_ID_KIND_GNU, b"\4" * 20, b"", b"", (), 0)
    assert remote.wanted(kernel)
    upload(remote, kernel, b"0 T _text\n40 t schedule\n80 ! \n", symbols_pb2.UPLOAD_FORMAT_KALLSYMS)
    assert remote.wait_idle(WAIT_S)
    assert name_of(remote, kernel, 0x47) == "schedule"


def test_forged_upload_names_nothing_and_stands_not_for_ever(remote: Namer, clock: Clock, tmp_path: Path) -> None:
    """E4: the id inside is another one. Later the true file is taken."""
    true = compile_program(SOURCE, tmp_path / "true", "-O1", "-Wl,--build-id=0x1234567890abcdef")
    forged = compile_program("int evil(void) { return 7; } int main(void) { return evil(); }", tmp_path / "forged")
    binary, places = describe(true), addresses_by_nm(true)
    assert upload(remote, binary, forged.read_bytes()).status == symbols_pb2.UPLOAD_STATUS_DONE
    assert remote.wait_idle(WAIT_S)
    state = remote.state(binary)
    assert (state.state, state.reason[:24]) == (NameState.FAILED, "malformed: the file has ")
    assert name_of(remote, binary, places["work"]).startswith("[unknown] true+0x")
    assert upload(remote, binary, true.read_bytes()).status == symbols_pb2.UPLOAD_STATUS_NOT_WANTED
    clock.now_s += RETRY_S + 1
    assert remote.wanted(binary)
    assert upload(remote, binary, true.read_bytes()).status == symbols_pb2.UPLOAD_STATUS_DONE
    assert remote.wait_idle(WAIT_S)
    assert name_of(remote, binary, places["work"]) == "work"


def test_same_build_id_other_code_never_crosses(remote: Namer, tmp_path: Path) -> None:
    """C38, E5"""
    option = "-Wl,--build-id=0x1234567890abcdef"
    one = describe(compile_program("int main(void) { return 7; }", tmp_path / "one", option), 1)
    other = "int before(int x) { return x * 23; } int main(void) { return before(7); }"
    two = describe(compile_program(other, tmp_path / "two", option), 2)
    assert one.build_id == two.build_id and one.content_hash != two.content_hash
    upload(remote, one, (tmp_path / "one").read_bytes())
    assert remote.wait_idle(WAIT_S)
    assert remote.wanted(two) and not remote.wanted(one)
    assert name_of(remote, two, addresses_by_nm(tmp_path / "two")["main"]).startswith("[unknown] two+0x")


def test_binary_without_identity_is_never_wanted(remote: Namer, program: Path) -> None:
    nobody = replace(describe(program), build_id_kind=pb.BUILD_ID_KIND_NONE, build_id=b"", content_hash=b"")
    assert not remote.wanted(nobody)
    assert remote.state(nobody).reason == "neither build id nor content hash"


def test_file_without_symbols_says_so(remote: Namer, tmp_path: Path) -> None:
    bare = compile_program("int main(void) { return 7; }", tmp_path / "bare", "-s", "-static", "-nostdlib", "-Wl,-e,main", "-Wl,--build-id")
    binary = describe(bare)
    upload(remote, binary, bare.read_bytes())
    assert remote.wait_idle(WAIT_S)
    assert (remote.state(binary).state, remote.state(binary).reason) == (NameState.NONE, "the file holds no symbols")


def test_table_that_left_the_disk_is_made_again_from_what_is_kept(tmp_path: Path, program: Path) -> None:
    settings = SymbolSettings(tmp_path / "symbols", local_files=False, free_min_bytes=0)
    first = Namer(settings)
    binary, places = describe(program), addresses_by_nm(program)
    upload(first, binary, program.read_bytes())
    assert first.wait_idle(WAIT_S)
    first.close()
    second = Namer(settings)
    [path] = (tmp_path / "symbols" / "tables").glob("*/*.names")
    path.unlink()
    assert name_of(second, binary, places["work"]).startswith("[unknown]")
    assert second.wait_idle(WAIT_S)
    assert name_of(second, binary, places["work"]) == "work"
    second.close()
    path.unlink()
    shutil.rmtree(tmp_path / "symbols" / "files")
    third = Namer(settings)
    assert third.wanted(binary)
    third.close()


def test_better_replaces_worse_and_history_renames_itself(tmp_path: Path) -> None:
    """C40, C41: stripped from an agent, then its debug file from a debuginfod server; never back, and all of it after a restart."""
    whole = compile_program(SOURCE.replace("int work", "static int work"), tmp_path / "app", "-O1", "-g", "-rdynamic")
    places, stripped, debug = addresses_by_nm(whole), tmp_path / "stripped", tmp_path / "debug"
    run_tool("objcopy", "--only-keep-debug", whole, debug)
    run_tool("objcopy", "--strip-all", whole, stripped)
    binary = describe(stripped)
    with Upstreams() as upstream:
        upstream.files[binary.build_id.hex()] = debug.read_bytes()
        settings = SymbolSettings(tmp_path / "symbols", local_files=False, free_min_bytes=0, upstreams=parse_upstreams(upstream.url))
        namer = Namer(settings)
        assert namer.wanted(binary)
        upload(namer, binary, stripped.read_bytes())
        assert namer.wait_idle(WAIT_S)
        assert upstream.asked == []
        assert name_of(namer, binary, places["main"]) == "main"
        namer.tend()
        until(lambda: name_of(namer, binary, places["work"]) == "work")
        assert upstream.asked == [f"/buildid/{binary.build_id.hex()}/debuginfo"]
        assert namer.wait_idle(WAIT_S)
        attempts = {attempt.origin: attempt for attempt in namer.record(binary).attempts}
        assert (attempts["agent"].outcome, attempts["debuginfod"].outcome) == ("ok", "ok")
        assert attempts["debuginfod"].place == upstream.url
        namer.close()
        again = Namer(settings)
        assert name_of(again, binary, places["work"]) == "work"
        assert again.record(binary) == namer.record(binary)
        again.close()


def test_nothing_waits_for_a_debuginfod_server(tmp_path: Path) -> None:
    """Names, states and the end of the server, all while a request hangs."""
    program = compile_program(SOURCE, tmp_path / "app", "-O1", "-rdynamic")
    places = addresses_by_nm(program)
    run_tool("objcopy", "--strip-all", program)
    binary = describe(program)
    with Upstreams() as upstream:
        upstream.answer = lambda _: upstream.is_over.wait(600) and None
        namer = Namer(SymbolSettings(tmp_path / "symbols", debug_roots=(), free_min_bytes=0, upstreams=parse_upstreams(upstream.url)))
        namer.state(binary)
        assert namer.wait_idle(WAIT_S)
        namer.tend()
        until(lambda: len(upstream.asked) == 1)
        assert name_of(namer, binary, places["main"]) == "main"
        assert (namer.pending(), namer.is_fetch_waiting(binary)) == (0, True)
        namer.tend()
        namer.close()
        assert not upstream.is_over.is_set() and len(upstream.asked) == 1


def test_common_file_of_dwz_is_fetched_too(tmp_path: Path) -> None:
    """C21, C45: two debug files that share a third; it is asked for by its own build id."""
    sources = ["int one(struct big *x) { return x->a; }", "int two(struct big *x) { return x->a * 7; }"]
    head = "struct big { int a; long b; char name[70]; struct big *next; };\n__attribute__((noinline)) "
    programs = [
        compile_program(
            f"{head}{source} int main(void) {{ struct big x = {{0}}; return {source[4:7]}(&x); }}",
            tmp_path / f"p{at}",
            "-g",
            "-gdwarf-4",
            "-O1",
        )
        for at, source in enumerate(sources)
    ]
    debugs = [tmp_path / f"p{at}.debug" for at in range(2)]
    for program, debug in zip(programs, debugs, strict=True):
        run_tool("objcopy", "--only-keep-debug", program, debug)
        run_tool("objcopy", "--strip-all", program)
    common = tmp_path / "common"
    run_tool("dwz", "-m", common, *debugs)
    descriptor = os.open(debugs[0], os.O_RDONLY)
    link = probe(descriptor).alt_link
    os.close(descriptor)
    assert link is not None
    binary = describe(programs[0])
    with Upstreams() as upstream:
        upstream.files = {binary.build_id.hex(): debugs[0].read_bytes(), link.build_id.hex(): common.read_bytes()}
        namer = Namer(SymbolSettings(tmp_path / "symbols", debug_roots=(), free_min_bytes=0, upstreams=parse_upstreams(upstream.url)))
        namer.state(binary)
        assert namer.wait_idle(WAIT_S)
        namer.tend()
        until(lambda: namer.state(binary).quality >= Quality.FULL)
        assert namer.wait_idle(WAIT_S)
        namer.tend()
        until(lambda: ("common", "ok") in {(a.origin, a.outcome) for a in namer.record(binary).attempts})
        until(lambda: namer.state(binary).quality == Quality.DWARF)
        assert sorted(upstream.asked) == sorted(f"/buildid/{digits}/debuginfo" for digits in upstream.files)
        namer.close()


def test_debug_file_of_other_code_with_the_same_build_id_names_nothing(remote: Namer, tmp_path: Path) -> None:
    """C38"""
    option = "-Wl,--build-id=0x1234567890abcdef"
    binary = describe(compile_program("int main(void) { return 7; }", tmp_path / "one", option, "-s"))
    other = compile_program("int evil(int x) { return x * 23; } int main(void) { return evil(7); }", tmp_path / "two", option, "-g")
    run_tool("objcopy", "--only-keep-debug", other)
    assert remote.wanted(binary)
    with Upstreams() as upstream:
        upstream.files[binary.build_id.hex()] = other.read_bytes()
        namer = Namer(SymbolSettings(tmp_path / "symbols", debug_roots=(), free_min_bytes=0, upstreams=parse_upstreams(upstream.url)))
        namer.state(binary)
        assert namer.wait_idle(WAIT_S)
        namer.retry(key_of(binary).digest)
        until(lambda: any(attempt.origin == "debuginfod" for attempt in namer.record(binary).attempts))
        [attempt] = [attempt for attempt in namer.record(binary).attempts if attempt.origin == "debuginfod"]
        assert attempt.outcome == "mismatch"
        namer.close()


def test_ids_that_are_no_build_ids_are_never_asked_for(tmp_path: Path, program: Path, clock: Clock) -> None:
    """B13: neither Go's, nor content hashes, nor the kernel's list."""
    with Upstreams() as upstream:
        settings = SymbolSettings(tmp_path / "symbols", local_files=False, free_min_bytes=0, upstreams=parse_upstreams(upstream.url))
        namer, plain = Namer(settings, clock), describe(program)
        binaries = [
            replace(plain, build_id_kind=pb.BUILD_ID_KIND_GO),
            replace(plain, build_id_kind=pb.BUILD_ID_KIND_NONE, build_id=b""),
            replace(plain, build_id=bytes(20)),
            replace(plain, kind=pb.BINARY_KIND_VDSO),
        ]
        for _ in range(2):
            for binary in binaries:
                namer.retry(key_of(binary).digest)
            assert namer.wait_idle(WAIT_S)
            namer.tend()
            clock.now_s += AGENTS_FIRST_S + 1
        assert namer.state(plain).state == NameState.WANTED
        assert not namer.is_fetch_waiting(plain)  # The agents have their time first.
        namer.tend()
        assert not namer.is_fetch_waiting(plain) and upstream.asked == []
        clock.now_s += AGENTS_FIRST_S + 1
        namer.tend()
        until(lambda: upstream.asked == [f"/buildid/{plain.build_id.hex()}/debuginfo"])
        namer.close()


def test_debug_file_that_is_installed_later_is_found(tmp_path: Path, clock: Clock) -> None:
    program, root = compile_program(SOURCE, tmp_path / "app", "-O1"), tmp_path / "debug"
    places, debug = addresses_by_nm(program), tmp_path / "app.debug"
    run_tool("objcopy", "--only-keep-debug", program, debug)
    run_tool("objcopy", "--strip-all", program)
    binary = describe(program)
    namer = Namer(SymbolSettings(tmp_path / "symbols", debug_roots=(root,)), clock)
    assert name_of(namer, binary, places["work"]).startswith("[unknown]")
    assert namer.wait_idle(WAIT_S)
    place = root / ".build-id" / binary.build_id.hex()[:2] / f"{binary.build_id.hex()[2:]}.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(debug, place)
    assert name_of(namer, binary, places["work"]).startswith("[unknown]")
    clock.now_s += NEWS_S + 1
    namer.tend()
    until(lambda: name_of(namer, binary, places["work"]) == "work")
    namer.close()


def test_directory_that_cannot_be_made_is_said_in_words(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ServerError, match="symbol directory"):
        Namer(SymbolSettings(tmp_path / "file"))


def test_what_is_looked_at_is_told_until_it_has_names(tmp_path: Path, program: Path) -> None:
    namer = Namer(SymbolSettings(tmp_path / "symbols", debug_roots=()))
    others = [replace(describe(program), row_id=row_id, content_hash=bytes([row_id]) * 16) for row_id in range(2, 9)]
    for binary in (*others, describe(program)):
        namer.state(binary)
    looked = [(binary, 1.0) for binary in others]
    assert set(namer.look_at(looked)) <= {binary.row_id for binary in others}
    assert namer.wait_idle(WAIT_S)
    assert namer.look_at(looked) == []
    namer.close()
