# SPDX-License-Identifier: Apache-2.0
"""Offsets to addresses by the segments of the running binary, and the step back of return addresses."""

import os
from pathlib import Path

import numpy as np
import pytest

from agent.process.cutter import cut_for_upload
from agent.process.vdso import binary_from_image, open_image, read_image
from emberwatch.v1 import batch_pb2 as pb
from server.store.protocol import BinaryInfo
from server.symbols.build_result import Quality
from server.symbols.identity import key_of
from server.symbols.resolve import MANY, SegmentRow, addresses_from_offsets, resolve
from server.symbols.symtab import U64, Ranges, choose
from server.symbols.table import Table, TableFacts, Traits
from tests.server.symbols.inline_tables import shop
from tests.server.symbols.programs import addresses_by_nm, build_here, compile_program, describe, run_tool
from tests.server.symbols.test_symtab import raw

R, RX, RW = 4, 5, 6


def u64(*values: int) -> U64:
    return np.array(values, np.uint64)


def binary(*segments: SegmentRow, kind: int = pb.BINARY_KIND_ELF) -> BinaryInfo:
    return BinaryInfo(1, kind, pb.BUILD_ID_KIND_GNU, b"\1" * 20, b"\2" * 16, b"/srv/app", segments, 0)


def table(*rows: tuple[int, int, int, str]) -> Table:
    code = Ranges(u64(0x0), u64(0x10_0000))
    return Table(TableFacts(key_of(binary()), Quality.FULL, Traits.NONE), choose(raw(*rows), code), 0)


def test_segment_that_is_not_at_its_offset() -> None:
    """B2: LOAD R-E off 0x14648 vaddr 0x20c648; map 73d12000-... r-xp 00014000; sample 0x73d12abc is offset 0x14abc."""
    segments = ((0, 0, 0x14648, 0x14648, R), (0x14648, 0x20C648, 0x1D7E000, 0x1D7E000, RX))
    addresses, is_held = addresses_from_offsets(segments, u64(0x73D12ABC - 0x73D12000 + 0x14000))
    assert (addresses.tolist(), is_held.tolist()) == ([0x20CABC], [True])


def test_two_code_segments_with_different_shifts() -> None:
    """B3: (0x1000 -> 0x1000) and (0x4000 -> 0x800000); the first one's shift would give 0x4000."""
    segments = ((0x1000, 0x1000, 0x2A1, 0x2A1, RX), (0x4000, 0x800000, 0x1B, 0x1B, RX))
    addresses, is_held = addresses_from_offsets(segments, u64(0x1000, 0x12A0, 0x12A1, 0x4000, 0x401A, 0x401B))
    assert is_held.tolist() == [True, True, False, True, True, False]
    assert addresses[is_held].tolist() == [0x1000, 0x12A0, 0x800000, 0x80001A]


def test_executable_segment_is_asked_first_and_vaddr_may_be_below_offset() -> None:
    segments = ((0x0, 0x9000, 0x3000, 0x3000, RW), (0x1000, 0x10, 0x1000, 0x1000, RX))
    addresses, is_held = addresses_from_offsets(segments, u64(0x1000, 0x2500))
    assert (addresses.tolist(), is_held.tolist()) == ([0x10, 0xB500], [True, True])


def test_very_many_are_found_as_few_are() -> None:
    symbols = choose(raw((0x100, 0x80, 0, "half"), (0x200, 0x80, 0, "main")), Ranges(u64(0), u64(0x300)))
    made = Table(TableFacts(key_of(binary()), Quality.DWARF, Traits.NONE), symbols, 0, shop())
    wanted = np.random.default_rng(7).integers(0, 0x300, MANY + 23).astype(np.uint64)
    owner, is_return = binary((0, 0, 0x300, 0x300, RX)), (wanted % 2).astype(np.uint8)
    whole = resolve(owner, made, wanted, is_return)
    pieces = [resolve(owner, made, *some) for some in zip(np.array_split(wanted, 3), np.array_split(is_return, 3), strict=True)]
    for column in ("addresses", "symbols", "places"):
        assert getattr(whole, column).tolist() == np.concatenate([getattr(piece, column) for piece in pieces]).tolist()
    assert set(whole.symbols.tolist()) == {-1, 0, 1} and len(set(whole.places.tolist())) > 2


def test_no_segment_no_name() -> None:
    """B5: a debug-only file would say offset 0, size 0; then nothing is named rather than something wrong."""
    found = resolve(binary((0, 0x1000, 0, 0x2A1, RX)), table((0x0, 0x1000, 0, "f")), u64(0x7), np.zeros(1, np.uint8))
    assert (found.addresses.tolist(), found.symbols.tolist()) == ([0x7], [-1])


def test_lying_segments_do_no_harm() -> None:
    big = 2**64 - 1
    segments = ((big, big, big, big, RX), (0, big, big, big, RX), (0x1000, 0, 2**63, 0, RX))
    addresses, is_held = addresses_from_offsets(segments, u64(0, 0x1000, big))
    assert is_held.tolist() == [True, True, True]
    assert addresses.tolist() == [big, 0xFFF, big]


def test_return_addresses_are_looked_up_one_byte_before() -> None:
    """`caller` ends with a call that never returns: the return address is the first byte of `next`."""
    rows = ((0x1000, 0x40, 0, "caller"), (0x1040, 0x40, 0, "next"))
    segments = ((0x1000, 0x1000, 0x80, 0x80, RX),)
    is_return = np.array([0, 1, 1, 0, 1], np.uint8)
    found = resolve(binary(*segments), table(*rows), u64(0x1040, 0x1040, 0x1041, 0x1080, 0x1080), is_return)
    assert found.symbols.tolist() == [1, 0, 1, -1, 1]
    assert found.addresses[:3].tolist() == [0x1040, 0x1040, 0x1041]


def test_return_address_zero_stays() -> None:
    found = resolve(binary((0, 0, 0x80, 0x80, RX)), table((0, 8, 0, "f")), u64(0), np.ones(1, np.uint8))
    assert (found.addresses.tolist(), found.symbols.tolist()) == ([0], [0])


def test_kernel_offsets_are_what_the_table_holds() -> None:
    kernel = binary(kind=pb.BINARY_KIND_KERNEL)
    found = resolve(kernel, table((0x40, 0x80, 0, "schedule"), (0xC0, 8, 0, "next")), u64(0x40, 0xC0, 0xC0), np.array([0, 0, 1], np.uint8))
    assert found.symbols.tolist() == [0, 1, 0]


def test_without_a_table_all_is_unknown_but_placed() -> None:
    found = resolve(binary((0x1000, 0x5000, 0x80, 0x80, RX)), None, u64(0x1010), np.ones(1, np.uint8))
    assert (found.addresses.tolist(), found.symbols.tolist()) == ([0x5010], [-1])


def test_real_program_with_a_far_section(tmp_path: Path) -> None:
    """B3 with a linker: far2 lies in a segment of its own, far from its file offset."""
    source = """
    __attribute__((section(".text2"), noinline)) int far1(int x) { return x * 7; }
    __attribute__((section(".text2"), noinline)) int far2(int x) { return far1(x) + 23; }
    int main(int c, char **v) { (void)v; return far2(c); }
    """
    program = compile_program(source, tmp_path / "far", "-O1", "-Wl,--section-start=.text2=0x800000")
    info, places = describe(program), addresses_by_nm(program)
    _, built = build_here(key_of(info), program)
    shift = [vaddr - offset for offset, vaddr, *_ in info.segments if vaddr == 0x800000]
    assert len(shift) == 1 and shift[0] > 0 and built is not None
    found = resolve(info, built, u64(places["far2"] - shift[0]), np.zeros(1, np.uint8))
    assert built.raw_names(found.symbols) == [b"far2"]


def test_shared_library_whose_addresses_are_not_its_offsets(tmp_path: Path) -> None:
    """B6"""
    library = compile_program("int work(int x) { return x * 7; }", tmp_path / "lib.so", "-shared", "-fPIC", "-Wl,-Ttext-segment=0x700000")
    info, places = describe(library), addresses_by_nm(library)
    _, built = build_here(key_of(info), library)
    code = next(s for s in info.segments if s[4] & 1)
    assert code[0] != code[1] and built is not None
    found = resolve(info, built, u64(places["work"] - code[1] + code[0]), np.zeros(1, np.uint8))
    assert built.raw_names(found.symbols) == [b"work"]


def test_debug_file_is_read_by_the_segments_of_the_running_binary(tmp_path: Path) -> None:
    """B5: names from the debug file, addresses by what ran."""
    program = compile_program("int main(void) { return 7; }", tmp_path / "p", "-g")
    debug = tmp_path / "p.debug"
    run_tool("objcopy", "--only-keep-debug", program, debug)
    info, places = describe(program), addresses_by_nm(program)
    _, built = build_here(key_of(info), debug)
    code = next(s for s in info.segments if s[4] & 1)
    assert built is not None
    found = resolve(info, built, u64(places["main"] - code[1] + code[0]), np.zeros(1, np.uint8))
    assert built.raw_names(found.symbols) == [b"main"]


def test_the_vdso_is_named_from_what_the_agent_sends_of_it(tmp_path: Path) -> None:
    """B11: the image of this machine, cut as for upload."""
    image = read_image()
    found = binary_from_image(image)
    fd = open_image(image)
    if found is None or fd is None:
        pytest.skip("no vDSO is mapped, or /proc/self/mem cannot be read")
    cut = cut_for_upload(fd, tmp_path)
    os.close(fd)
    assert cut.fd is not None, cut.reason
    sent = tmp_path / "vdso"
    sent.write_bytes(os.pread(cut.fd, cut.size_bytes, 0))
    os.close(cut.fd)
    info = BinaryInfo(
        1,
        found.kind,
        found.id.build_id_kind,
        found.id.build_id,
        found.id.content_hash,
        found.path,
        tuple((s.offset, s.vaddr, s.file_size_bytes, s.memory_size_bytes, s.flags) for s in found.segments),
        found.size_bytes,
    )
    (tmp_path / "whole").write_bytes(image)
    places = addresses_by_nm(tmp_path / "whole", "-D", "--without-symbol-versions")
    _, built = build_here(key_of(info), sent)
    assert built is not None
    (code,) = (s for s in info.segments if s[4] & 1)
    named = resolve(info, built, u64(places["__vdso_gettimeofday"] - code[1] + code[0] + 4), np.zeros(1, np.uint8))
    assert built.raw_names(named.symbols) == [b"__vdso_gettimeofday"]
