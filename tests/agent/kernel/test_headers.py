# SPDX-License-Identifier: Apache-2.0
"""The header tree is written once per kernel, holds only what programs need, and says what is missing."""

from pathlib import Path

import pytest

from agent.errors import KernelError
from agent.kernel.btf import Btf
from agent.kernel.headers import HeaderSource, KernelVersion, build_id_from_notes, ensure_header_tree, kernel_version, vmlinux_header
from tests.support.btf import BtfBuilder

BUILD_ID = bytes(range(20))
# name length 6, description length 0, type 256, "Linux\0" padded to 8; then name length 4, 20 bytes, type 3 (build id), "GNU\0"
NOTES = (
    b"\x06\0\0\0\x00\0\0\0\x00\x01\0\0Linux\0\0\0"
    b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0" + BUILD_ID
)  # fmt: skip


def small_kernel() -> BtfBuilder:
    builder = BtfBuilder()
    u32 = builder.integer("unsigned int", 4)
    builder.add(8, "u32", u32)
    builder.struct("task_struct", 4, ("flags", u32, 0))
    builder.struct("never_used", 4, ("flags", u32, 0))
    builder.enum("bpf_func_id", ("BPF_FUNC_map_lookup_elem", 1), ("OTHER", 2))
    return builder


def source_of(directory: Path) -> HeaderSource:
    directory.mkdir(exist_ok=True)
    (directory / "vmlinux").write_bytes(small_kernel().data())
    (directory / "notes").write_bytes(NOTES)
    return HeaderSource(directory / "vmlinux", directory / "notes")


def test_header_holds_what_is_used_and_no_more() -> None:
    text = vmlinux_header(Btf(small_kernel().data()))
    assert "struct task_struct {" in text
    assert "typedef unsigned int u32;" in text
    assert "never_used" not in text
    assert "OTHER" not in text


def test_helpers_that_an_older_kernel_lacks_get_their_numbers() -> None:
    text = vmlinux_header(Btf(small_kernel().data()))
    assert text.count("BPF_FUNC_map_lookup_elem = 1,") == 1
    assert "BPF_FUNC_ringbuf_output = 130," in text
    assert "BPF_FUNC_cgrp_storage_delete = 211," in text


def test_programs_are_told_whether_the_running_task_has_a_type() -> None:
    older, newer = small_kernel(), small_kernel()
    newer.enum("bpf_func_id", ("BPF_FUNC_get_current_task_btf", 158))
    assert "EMBERWATCH_TYPED_TASK" not in vmlinux_header(Btf(older.data()))
    assert "#define EMBERWATCH_TYPED_TASK 1\n" in vmlinux_header(Btf(newer.data()))


@pytest.mark.parametrize(
    ("members", "places"),
    [
        ({"i_ctime": 40}, (5, 13)),  # a timespec64: seconds, nanoseconds
        ({"__i_ctime": 48}, (6, 14)),  # the same from 6.6 on
        ({"i_ctime_sec": 56, "i_ctime_nsec": 120}, (7, 15)),  # from 6.11 on
    ],
)
def test_mappings_are_looked_up_by_the_time_of_change_wherever_the_inode_keeps_it(members: dict[str, int], places: tuple[int, int]) -> None:
    builder = small_kernel()
    u32 = 1
    builder.struct("inode", 64, *((name, u32, offset_bits) for name, offset_bits in members.items()))
    assert "EMBERWATCH_MAPLE_TREE" not in vmlinux_header(Btf(builder.data()))
    builder.struct("maple_arange_64", 8, ("parent", u32, 0))
    text = vmlinux_header(Btf(builder.data()))
    assert "#define EMBERWATCH_MAPLE_TREE 1\n" in text
    assert f"#define EMBERWATCH_CTIME_S_AT {places[0]}\n#define EMBERWATCH_CTIME_NS_AT {places[1]}\n" in text


def test_tree_is_written_once_per_kernel(tmp_path: Path) -> None:
    source = source_of(tmp_path / "sys")
    tree = ensure_header_tree(tmp_path / "cache", source, KernelVersion(6, 1, 300))
    (tree / "include/vmlinux.h").write_text("kept")
    assert ensure_header_tree(tmp_path / "cache", source, KernelVersion(6, 1, 300)) == tree
    assert (tree / "include/vmlinux.h").read_text() == "kept"
    assert BUILD_ID.hex() in tree.name
    assert "KERNEL_VERSION(6, 1, 300)" in (tree / "include/linux/kconfig.h").read_text()
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [tree.name]


def test_damaged_tree_is_written_again(tmp_path: Path) -> None:
    source = source_of(tmp_path / "sys")
    tree = ensure_header_tree(tmp_path / "cache", source, KernelVersion(6, 1, 0))
    (tree / "complete").unlink()
    (tree / "include/vmlinux.h").write_text("damaged")
    assert ensure_header_tree(tmp_path / "cache", source, KernelVersion(6, 1, 0)) == tree
    assert "task_struct" in (tree / "include/vmlinux.h").read_text()


def test_kernel_without_btf_is_told_what_to_boot(tmp_path: Path) -> None:
    with pytest.raises(KernelError, match=r"no BTF .*: boot one built with CONFIG_DEBUG_INFO_BTF=y"):
        ensure_header_tree(tmp_path, HeaderSource(tmp_path / "none", tmp_path / "none"), KernelVersion(6, 1, 0))


def test_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(KernelError, match="cannot write the header tree"):
        ensure_header_tree(tmp_path / "file", source_of(tmp_path / "sys"), KernelVersion(6, 1, 0))


@pytest.mark.parametrize(
    ("release", "code"), [("6.18.44-fc-v595", 0x06122C), ("5.10.0-28-amd64", 0x050A00), ("6.1", 0x060100), ("4.19.300", 0x0413FF)]
)
def test_version_code_clamps_the_sub_level(release: str, code: int) -> None:
    assert kernel_version(release).code == code


def test_release_without_a_version_is_refused() -> None:
    with pytest.raises(KernelError, match="'mainline'"):
        kernel_version("mainline")


def test_build_id_is_found_among_the_notes() -> None:
    assert build_id_from_notes(NOTES) == BUILD_ID


@pytest.mark.parametrize("notes", [b"", NOTES[:20], NOTES[:-1], b"\xff" * 64, NOTES.replace(b"\x14\0\0\0\x03", b"\x02\0\0\0\x03")])
def test_notes_without_a_whole_build_id_have_none(notes: bytes) -> None:
    assert build_id_from_notes(notes) is None
