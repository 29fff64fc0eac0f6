# SPDX-License-Identifier: Apache-2.0
"""Declarations put every member where BTF has it: by hand for small cases, and by gcc for the running kernel."""

import shutil
import subprocess
from pathlib import Path

import pytest

from agent.errors import KernelError
from agent.kernel.btf import Btf
from agent.kernel.c_types import TypeWriter
from agent.kernel.headers import ROOT_COMPOSITES, vmlinux_header
from tests.support.btf import BtfBuilder

VMLINUX = Path("/sys/kernel/btf/vmlinux")


def text_of(builder: BtfBuilder, name: str) -> str:
    btf = Btf(builder.data())
    writer = TypeWriter(btf)
    type_id = btf.composite(name)
    assert type_id is not None
    writer.add_composite(type_id)
    return writer.text().replace("\n", " ").strip()


def test_natural_layout_is_written_plainly() -> None:
    builder = BtfBuilder()
    u32 = builder.integer("unsigned int", 4)
    builder.struct("pair", 8, ("first", u32, 0), ("second", u32, 32))
    assert text_of(builder, "pair") == "struct pair { unsigned int first; unsigned int second; };"


def test_gap_is_spelled_out() -> None:
    builder = BtfBuilder()
    u32 = builder.integer("unsigned int", 4)
    builder.struct("aligned", 16, ("first", u32, 0), ("second", u32, 64))
    assert text_of(builder, "aligned") == (
        "struct aligned { unsigned int first; char __gap1[4]; unsigned int second; char __gap3[4]; } __attribute__((packed, aligned(4)));"
    )


def test_pointer_to_a_struct_only_names_it() -> None:
    builder = BtfBuilder()
    target = builder.struct("far", 4)
    pointer = builder.add(2, "", target)
    builder.struct("near", 8, ("to", pointer, 0))
    assert text_of(builder, "near") == "struct far; struct near { struct far *to; };"


def test_pointer_to_a_function_becomes_void() -> None:
    builder = BtfBuilder()
    function = builder.add(13, "", 0)
    pointer = builder.add(2, "", function)
    builder.struct("holder", 8, ("call", pointer, 0))
    assert text_of(builder, "holder") == "struct holder { void *call; };"


def test_struct_held_by_value_comes_first() -> None:
    builder = BtfBuilder()
    u32 = builder.integer("unsigned int", 4)
    inner = builder.struct("inner", 4, ("value", u32, 0))
    builder.struct("outer", 4, ("held", inner, 0))
    assert text_of(builder, "outer") == "struct inner { unsigned int value; }; struct outer { struct inner held; };"


def test_struct_that_holds_itself_is_refused() -> None:
    builder = BtfBuilder()
    builder.struct("", 4, ("me", 1, 0))
    builder.struct("outer", 4, ("held", 1, 0))
    with pytest.raises(KernelError, match="holds itself"):
        text_of(builder, "outer")


@pytest.mark.skipif(not VMLINUX.exists() or not shutil.which("gcc"), reason="needs a kernel with BTF, and gcc")
def test_gcc_puts_the_members_of_this_kernel_where_btf_says(tmp_path: Path) -> None:
    btf = Btf(VMLINUX.read_bytes())
    asserts = []
    for name in ROOT_COMPOSITES:
        type_id = btf.composite(name)
        if type_id is None:
            continue
        asserts.append(f'_Static_assert(sizeof(struct {name}) == {btf.size_bytes(type_id)}, "size of {name}");')
        for member in btf.members(type_id):
            if member.name and not member.bitfield_width:
                offset = f"__builtin_offsetof(struct {name}, {member.name})"
                asserts.append(f'_Static_assert({offset} == {member.offset_bits // 8}, "{name}.{member.name}");')
    assert len(asserts) > 200
    (tmp_path / "vmlinux.h").write_text(vmlinux_header(btf))
    source = tmp_path / "check.c"
    source.write_text('#include "vmlinux.h"\n' + "\n".join(asserts) + "\n")
    done = subprocess.run(["gcc", "-fsyntax-only", "-w", str(source)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
