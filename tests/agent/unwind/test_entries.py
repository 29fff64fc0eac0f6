# SPDX-License-Identifier: Apache-2.0
"""Tests of reading CIEs and FDEs."""

import struct

import pytest

from agent.records.unwind import TableMiss
from agent.unwind import entries
from agent.unwind.eh_frame import DecodeRefused
from agent.unwind.entries import Entries, read_entries
from tests.support.eh_frames import END, FRAME_ADDRESS, cie, entry, fde, frame, section


def read(data: bytes, *, is_exact: bool = True) -> Entries:
    return read_entries(frame(data, is_exact=is_exact))


def miss(data: bytes) -> TableMiss:
    with pytest.raises(DecodeRefused) as refused:
        read(data)
    return refused.value.miss


def test_ranges_and_programs_of_all_functions() -> None:
    data = section((0x1000, 64, b"\x41\x0e\x10"), (0x2000, 7, b""))
    found = read(data)
    assert found.start.tolist() == [0x1000, 0x2000]
    assert found.end.tolist() == [0x1040, 0x2007]
    # An FDE's program begins behind length, distance, start, size and the empty augmentation: 17 bytes.
    first = len(cie()) + 17
    assert found.program_start.tolist()[0] == first
    assert data[first : found.program_end.tolist()[0]] == b"\x41\x0e\x10"
    assert (found.cies[0].code_factor, found.cies[0].data_factor, found.cies[0].pointer_encoding) == (1, -8, 0x1B)


def test_functions_behind_a_zero_entry_count_only_where_the_section_is_known() -> None:
    data = section((0x1000, 64, b"")) + cie()
    data += fde(len(data), 0x2000, 64, b"", cie_at=len(data) - len(cie()))
    assert read(data).start.tolist() == [0x1000, 0x2000]
    assert read(data, is_exact=False).start.tolist() == [0x1000]


def test_addresses_of_eight_bytes_and_without_a_base() -> None:
    # Augmentation zR with encoding 0x00: absolute, 8 bytes; then 0x1c: pc-relative, 8 bytes, signed
    for encoding, base in ((0x00, 0), (0x1C, FRAME_ADDRESS + 8)):
        head = cie().replace(b"\1\x1b", bytes((1, encoding)))
        at = len(head)
        body = struct.pack("<Iqq", at + 4, 0x1000 - (base + at if base else 0), 64) + b"\0"
        found = read(head + entry(body) + END)
        assert (found.start.tolist(), found.end.tolist()) == ([0x1000], [0x1040])


def test_a_personality_routine_is_skipped() -> None:
    # zPLR: personality encoding 0x9b and 4 bytes, LSDA encoding 0x1b, pointer encoding 0x1b
    body = struct.pack("<I", 0) + b"\1zPLR\0" + b"\1\x78\x10" + b"\7" + b"\x9b\0\0\0\0" + b"\x1b" + b"\x1b" + b"\x0c\x07\x08"
    head = entry(body)
    # The FDE has 4 bytes of augmentation: its LSDA.
    function = entry(struct.pack("<IiI", len(head) + 4, 0x1000 - (FRAME_ADDRESS + len(head) + 8), 64) + b"\4\0\0\0\0" + b"\x0e\x10")
    found = read(head + function + END)
    assert found.start.tolist() == [0x1000]
    assert found.program_start.tolist() == [len(head) + 21]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", TableMiss.NO_RULES),
        (cie() + END, TableMiss.NO_RULES),
        (section((0x1000, 64, b""))[:-6], TableMiss.MALFORMED),  # cut off
        (struct.pack("<I", 0xFFFFFFFF) + bytes(64), TableMiss.MALFORMED),  # the 64-bit form
        (struct.pack("<I", 2) + bytes(64), TableMiss.MALFORMED),  # shorter than its own head
        (cie() + fde(len(cie()), 0x1000, 64, b"", cie_at=4), TableMiss.MALFORMED),  # points into the CIE
        (cie() + fde(len(cie()), 0x1000, 64, b"", cie_at=len(cie())), TableMiss.MALFORMED),  # points at itself
        (cie() + entry(struct.pack("<I", len(cie()) + 4)), TableMiss.MALFORMED),  # no room for a range
        (section((0x1000, 64, b""), head=cie(code_factor=0)), TableMiss.NOT_SUPPORTED),
        (section((0x1000, 64, b""), head=cie(data_factor=0)), TableMiss.NOT_SUPPORTED),
        (section((0x1000, 64, b""), head=cie(augmentation=b"xx")), TableMiss.NOT_SUPPORTED),
        (section((0x1000, 64, b""), head=cie().replace(b"\1\x1b", b"\1\x9b")), TableMiss.NOT_SUPPORTED),  # indirect
        (section((0x1000, 64, b""), head=cie().replace(b"zR\0", b"zQ\0")), TableMiss.NOT_SUPPORTED),
        (section((0x1000, 64, b""), head=cie().replace(b"\1\x1b", b"\x7f\x1b")), TableMiss.MALFORMED),  # augmentation too long
    ],
)
def test_entries_that_make_no_sense_cost_the_table(data: bytes, expected: TableMiss) -> None:
    assert miss(data) == expected


def test_a_function_whose_augmentation_reaches_out_costs_the_table() -> None:
    data = bytearray(section((0x1000, 64, b"")))
    data[len(cie()) + 16] = 0x7F  # size of the augmentation data
    assert miss(bytes(data)) == TableMiss.MALFORMED


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entries, "MAX_FDES", 2)
    functions = [(0x1000 + 64 * index, 64, b"") for index in range(3)]
    assert len(read(section(*functions[:2])).start) == 2
    assert miss(section(*functions)) == TableMiss.TOO_LARGE
