# SPDX-License-Identifier: Apache-2.0
"""Tables of the kernel out of its list, of its debug file, and of both, whichever comes first."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.store.protocol import BinaryInfo
from server.symbols.build_result import Quality
from server.symbols.debuginfod import parse_upstreams
from server.symbols.identity import key_of
from server.symbols.namer import Namer
from server.symbols.settings import SymbolSettings
from tests.server.symbols.programs import addresses_by_nm, compile_program, run_tool
from tests.server.symbols.test_namer import SOURCE, WAIT_S, name_of, upload
from tests.support.upstreams import Upstreams, until

KERNEL = """
__asm__(".text\\n.globl _text\\n_text: nop\\nentry_point: nop\\nnop");
static inline __attribute__((always_inline)) int update(int x) { return x * 7; }
int __attribute__((noinline)) schedule(int x) { return update(x) + 1; }
int _start(int x) { return schedule(x); }
"""
KERNEL_START = 0xFFFFFFFF81000000
KERNEL_ID = bytes.fromhex("1234567890abcdef")


@pytest.fixture
def vmlinux(tmp_path: Path) -> Path:
    options = ("-O1", "-g", "-nostdlib", "-static", "-no-pie", "-fno-pie", "-fno-toplevel-reorder", "-mcmodel=kernel")
    linked = (f"-Wl,-Ttext={KERNEL_START:#x}", f"-Wl,--build-id=0x{KERNEL_ID.hex()}")
    return compile_program(KERNEL, tmp_path / "vmlinux", *options, *linked)


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Namer]:
    """A server that shares no disk with its agents."""
    namer = Namer(SymbolSettings(tmp_path / "symbols", local_files=False, free_min_bytes=0))
    yield namer
    namer.close()


def kernel_of(vmlinux: Path) -> tuple[BinaryInfo, dict[str, int], bytes]:
    """The kernel as agents see it, offsets of its functions, and its list."""
    places = {name: address - KERNEL_START for name, address in addresses_by_nm(vmlinux).items()}
    known = ("_text", "entry_point", "schedule", "_start")
    rows = [f"{places[name]:x} T {name.replace('entry_point', 'asm_entry')}\n" for name in known]
    listed = "".join([*rows, f"{places['_start'] + 64:x} ! \n"]).encode()
    return BinaryInfo(3, pb.BINARY_KIND_KERNEL, pb.BUILD_ID_KIND_GNU, KERNEL_ID, b"", b"", (), 0), places, listed


def assert_both(namer: Namer, vmlinux: Path) -> None:
    kernel, places, _ = kernel_of(vmlinux)
    assert namer.state(kernel).quality == Quality.DWARF
    assert name_of(namer, kernel, places["entry_point"]) == "asm_entry"
    assert name_of(namer, kernel, places["schedule"]) == "schedule"


def test_a_kernel_has_its_list_and_its_debug_file(tmp_path: Path, vmlinux: Path) -> None:
    """C4; the debug file is on this host before, or comes to be there."""
    kernel, places, listed = kernel_of(vmlinux)
    settings = SymbolSettings(tmp_path / "symbols", debug_roots=(tmp_path / "debug",), free_min_bytes=0)
    namer = Namer(settings)
    assert namer.wanted(kernel)
    upload(namer, kernel, listed, symbols_pb2.UPLOAD_FORMAT_KALLSYMS)
    assert namer.wait_idle(WAIT_S)
    assert (namer.state(kernel).quality, name_of(namer, kernel, places["entry_point"])) == (Quality.FULL, "asm_entry")
    namer.close()
    place = tmp_path / "debug/.build-id/12/34567890abcdef.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(vmlinux, place)
    again = Namer(settings)
    again.state(kernel)
    assert again.wait_idle(WAIT_S)
    assert_both(again, vmlinux)
    again.close()


def test_a_debug_file_of_the_kernel_is_uploaded(remote: Namer, vmlinux: Path) -> None:
    kernel, _, listed = kernel_of(vmlinux)
    remote.state(kernel)
    with vmlinux.open("rb") as file:
        assert remote.take_file(file.fileno()).binaries == 1
    assert remote.wait_idle(WAIT_S)
    assert remote.state(kernel).quality == Quality.DWARF
    assert upload(remote, kernel, listed, symbols_pb2.UPLOAD_FORMAT_KALLSYMS).status == symbols_pb2.UPLOAD_STATUS_NOT_WANTED


def test_a_file_that_is_no_good_leaves_the_kernel_to_its_list(remote: Namer, vmlinux: Path, tmp_path: Path) -> None:
    kernel, places, listed = kernel_of(vmlinux)
    remote.state(kernel)
    other = compile_program(SOURCE, tmp_path / "other", f"-Wl,--build-id=0x{KERNEL_ID.hex()}")
    with other.open("rb") as file:
        assert remote.take_file(file.fileno()).binaries == 1
    assert remote.wait_idle(WAIT_S)
    assert remote.wanted(kernel)
    upload(remote, kernel, listed, symbols_pb2.UPLOAD_FORMAT_KALLSYMS)
    assert remote.wait_idle(WAIT_S)
    assert name_of(remote, kernel, places["schedule"]) == "schedule"


def test_a_debug_file_of_the_kernel_is_fetched(tmp_path: Path, vmlinux: Path) -> None:
    kernel, _, listed = kernel_of(vmlinux)
    with Upstreams() as upstream:
        upstream.files[KERNEL_ID.hex()] = vmlinux.read_bytes()
        settings = SymbolSettings(tmp_path / "symbols", local_files=False, free_min_bytes=0, upstreams=parse_upstreams(upstream.url))
        namer = Namer(settings)
        namer.state(kernel)
        upload(namer, kernel, listed, symbols_pb2.UPLOAD_FORMAT_KALLSYMS)
        assert namer.wait_idle(WAIT_S)
        namer.retry(key_of(kernel).digest)
        until(lambda: namer.state(kernel).quality == Quality.DWARF)
        assert_both(namer, vmlinux)
        namer.close()


def test_a_debug_file_of_the_kernel_that_is_refused_leaves_the_next(tmp_path: Path, vmlinux: Path) -> None:
    """Both are tried, and what became of each is said."""
    kernel, places, _ = kernel_of(vmlinux)
    other = compile_program(SOURCE, tmp_path / "other", "-g", f"-Wl,--build-id=0x{KERNEL_ID.hex()}")
    place = tmp_path / "debug/.build-id/12/34567890abcdef.debug"
    place.parent.mkdir(parents=True)
    shutil.copy(other, place)
    namer = Namer(SymbolSettings(tmp_path / "symbols", debug_roots=(tmp_path / "debug",), free_min_bytes=0))
    namer.state(kernel)
    assert namer.wait_idle(WAIT_S)
    run_tool("objcopy", "--strip-debug", vmlinux)
    with vmlinux.open("rb") as file:
        assert namer.take_file(file.fileno()).binaries == 1
    assert namer.wait_idle(WAIT_S)
    assert name_of(namer, kernel, places["schedule"]) == "schedule"
    outcomes = {one.origin: (one.outcome, one.quality) for one in namer.record(kernel).attempts}
    assert outcomes["debug-root"] == ("unsupported", "")
    assert outcomes["upload"] == ("ok", "full")
    namer.close()
