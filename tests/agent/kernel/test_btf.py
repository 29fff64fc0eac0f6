# SPDX-License-Identifier: Apache-2.0
"""BTF built by hand is read back; what is cut off or false is refused."""

import pytest

from agent.errors import KernelError
from agent.kernel.btf import VOID, Btf, Kind, Member
from tests.support.btf import BtfBuilder


def test_members_are_read_with_their_offsets() -> None:
    builder = BtfBuilder()
    u32 = builder.integer("unsigned int", 4)
    pair = builder.struct("pair", 8, ("first", u32, 0), ("second", u32, 32))
    btf = Btf(builder.data())
    assert btf.composite("pair") == pair
    assert btf.size_bytes(pair) == 8
    assert btf.members(pair) == [Member("first", u32, 0, 0), Member("second", u32, 32, 0)]


def test_bit_fields_carry_their_width() -> None:
    builder = BtfBuilder()
    u32 = builder.integer("unsigned int", 4)
    flags = builder.bitfields("flags", 4, ("low", u32, 0, 3), ("high", u32, 3, 7))
    assert Btf(builder.data()).members(flags) == [Member("low", u32, 0, 3), Member("high", u32, 3, 7)]


def test_enumerators_are_signed_only_when_they_say_so() -> None:
    builder = BtfBuilder()
    signed = builder.enum("error", ("E_BUSY", -16), is_signed=True)
    unsigned = builder.enum("mask", ("M_ALL", 0xFFFFFFFF))
    btf = Btf(builder.data())
    assert btf.enumerators(signed) == [("E_BUSY", -16)]
    assert btf.enumerators(unsigned) == [("M_ALL", 0xFFFFFFFF)]


def test_wide_enumerators_join_both_halves() -> None:
    builder = BtfBuilder()
    wide = builder.add(19, "wide", 8, members=1)
    builder.words(0, 7, 5)  # no name, low half 7, high half 5
    assert Btf(builder.data()).enumerators(wide) == [("", (5 << 32) + 7)]


def test_typedefs_and_qualifiers_are_seen_through() -> None:
    builder = BtfBuilder()
    u64 = builder.integer("long unsigned int", 8)
    constant = builder.add(10, "", u64)
    typedef = builder.add(8, "u64", constant)
    btf = Btf(builder.data())
    assert btf.resolve(typedef) == u64
    assert btf.resolve(VOID) == VOID
    assert btf.ids_of_kind(Kind.TYPEDEF) == [typedef]


def test_type_that_refers_to_itself_is_refused() -> None:
    builder = BtfBuilder()
    typedef = builder.add(8, "loop", 1)
    with pytest.raises(KernelError, match="refers to itself"):
        Btf(builder.data()).resolve(typedef)


def test_unknown_name_is_none() -> None:
    assert Btf(BtfBuilder().data()).composite("task_struct") is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "cut off at 0"),
        (b"\x9f\xeb\x01", "cut off at 3"),
        (b"\xeb\x9f" + bytes(22), "not little-endian BTF"),
        # 2 magic, version, flags, header length 24, types at 0 of 4096 bytes, strings at 4096 of 1 byte: more than there is
        (b"\x9f\xeb\x01\x00" + b"".join(n.to_bytes(4, "little") for n in (24, 0, 4096, 4096, 1)), "more than the file holds"),
    ],
)
def test_false_header_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(KernelError, match=message):
        Btf(data)


def test_type_section_that_ends_inside_a_type_is_refused() -> None:
    builder = BtfBuilder()
    builder.add(4, "cut", 8, members=2)  # its two members are missing
    with pytest.raises(KernelError, match="cut off inside a type"):
        Btf(builder.data())


@pytest.mark.parametrize("kind", [0, 20, 31])
def test_unknown_kind_is_refused(kind: int) -> None:
    builder = BtfBuilder()
    builder.add(kind)
    with pytest.raises(KernelError, match=f"unknown kind {kind}"):
        Btf(builder.data())


def test_id_beyond_the_last_type_is_refused() -> None:
    builder = BtfBuilder()
    builder.integer("int", 4)
    with pytest.raises(KernelError, match="type 2 of 1"):
        Btf(builder.data()).kind(2)
