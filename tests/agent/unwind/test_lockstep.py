# SPDX-License-Identifier: Apache-2.0
"""Tests of the decoder in lock step: equal to the reference, on files of this machine and on whatever hypothesis finds."""

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.records.unwind import RuleKind, TableMiss, UnwindTable, rule
from agent.unwind import lockstep
from agent.unwind.eh_frame import DecodeRefused, EhFrame, find_eh_frame
from agent.unwind.lockstep import decode
from agent.unwind.scalar import decode_scalar
from tests.support.eh_frames import cie, frame, section
from tests.support.readelf import ReadelfRow, readelf_rows

_LIBRARIES = Path("/usr/lib/x86_64-linux-gnu")
FILES = [
    Path(sys.executable).resolve(),
    *(found for name in ("libc.so.6", "libstdc++.so.6", "libcrypto.so.3", "libm.so.6") if (found := _LIBRARIES / name).exists()),
]
INSTRUCTIONS = st.one_of(
    st.binary(min_size=1, max_size=6),
    st.sampled_from(
        (
            b"\x41",
            b"\x0a",
            b"\x0b",
            b"\x86\x02",
            b"\xc6",
            b"\x0e\x10",
            b"\x0d\x06",
            b"\x0c\x07\x08",
            b"\x02\x05",
            b"\x03\x05\x00",
            b"\x07\x10",
        )
    ),
)
PROGRAMS = st.lists(INSTRUCTIONS, max_size=12).map(b"".join)


def assert_same(found: UnwindTable, expected: UnwindTable) -> None:
    assert np.array_equal(found.addresses, expected.addresses)
    assert np.array_equal(found.rules, expected.rules)


def assert_well_formed(table: UnwindTable) -> None:
    assert (np.diff(table.addresses.astype(np.int64)) > 0).all()
    assert (table.rules[1:] != table.rules[:-1]).all()
    assert table.rules[-1] == RuleKind.NONE


def eh_frame_of(path: Path) -> EhFrame:
    file = os.open(path, os.O_RDONLY)
    try:
        return find_eh_frame(lambda offset, size: os.pread(file, size, offset))
    finally:
        os.close(file)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_of_this_machine_give_what_the_reference_gives(path: Path) -> None:
    found = eh_frame_of(path)
    table = decode(found)
    assert_well_formed(table)
    assert_same(table, decode_scalar(found))
    unsupported = np.count_nonzero(table.rules == RuleKind.UNSUPPORTED)
    assert unsupported < 0.01 * len(table.rules)


def expected_rule(row: ReadelfRow) -> int | None:
    """The rule for a row of readelf; None where it does not print enough to tell."""
    if row.ra == "u":
        return RuleKind.END
    found = re.fullmatch(r"(rsp|rbp)\+(\d+)", row.cfa)
    if found is None or row.bp == "exp":
        return None
    bp = re.fullmatch(r"c-(\d+)", row.bp)
    if row.ra != "c-8" or (bp is None and row.bp not in ("u", "s")):
        return RuleKind.UNSUPPORTED
    kind = RuleKind.SP if found[1] == "rsp" else RuleKind.BP
    return rule(kind, int(found[2]) // 8, 0 if bp is None else int(bp[1]) // 8)


@pytest.mark.parametrize("path", [path for path in FILES if path.name in ("libm.so.6", "libc.so.6")], ids=lambda path: path.name)
def test_rules_are_those_of_binutils(path: Path) -> None:
    table = decode(eh_frame_of(path))
    compared, wrong = 0, []
    for row in readelf_rows(path):
        expected = expected_rule(row)
        if expected is not None:
            ours = int(table.rules[np.searchsorted(table.addresses, row.address, side="right") - 1])
            compared += 1
            if ours != expected:
                wrong.append((row, hex(ours)))
    assert not wrong
    assert compared > 1000


@settings(max_examples=150, deadline=None)
@given(st.lists(PROGRAMS, min_size=1, max_size=8), PROGRAMS)
def test_any_program_gives_what_the_reference_gives(programs: list[bytes], first: bytes) -> None:
    data = section(
        *((0x1000 + 64 * index, 64, program) for index, program in enumerate(programs)), head=cie(b"\x0c\x07\x08\x90\x01" + first)
    )
    table = decode(frame(data), fewest_lanes=1)
    assert_well_formed(table)
    assert_same(table, decode_scalar(frame(data)))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_a_broken_section_is_refused_or_decoded_but_never_raises(data: st.DataObject) -> None:
    whole = bytearray(section(*((0x1000 + 64 * index, 64, b"\x41\x0e\x10\x86\x02\x43\x0d\x06") for index in range(6))))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    broken = frame(bytes(whole[: data.draw(st.integers(0, len(whole)))]), is_exact=data.draw(st.booleans()))
    try:
        table = decode(broken, fewest_lanes=1)
    except DecodeRefused as refused:
        assert refused.miss in (TableMiss.MALFORMED, TableMiss.NO_RULES, TableMiss.NOT_SUPPORTED)
    else:
        assert_well_formed(table)
        assert_same(table, decode_scalar(broken))


def test_too_many_rows_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lockstep, "MAX_RAW_ROWS", 7)
    data = frame(section((0x1000, 64, b"\x41\x0e\x10" * 7)))
    for fewest_lanes in (1, 48):
        with pytest.raises(DecodeRefused, match="over 7 rows"):
            decode(data, fewest_lanes)


def test_code_outside_the_text_of_the_file_has_no_rows() -> None:
    with pytest.raises(DecodeRefused, match="no FDE covers text"):
        decode(frame(section((0x100, 64, b""), (0x8FF0, 64, b""), (0x20000, 64, b""))))
