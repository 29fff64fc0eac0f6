# SPDX-License-Identifier: Apache-2.0
"""Range lists read all at once hold what each holds by itself, and a broken one costs itself."""

import random

import numpy as np
import pytest

from server.symbols.dwarf.abbrev import AbbreviationTable
from server.symbols.dwarf.constants import Form
from server.symbols.dwarf.range_columns import Lists, joined, read_lists
from server.symbols.dwarf.rangelist import ranges_of
from server.symbols.dwarf.shape import DwarfError, Shape
from server.symbols.dwarf.source import DebugData
from server.symbols.dwarf.unit import Unit, UnitHeader

LOW_PC = 0x7000
ADDRESSES = b"".join(number.to_bytes(8, "little") for number in (0x100, 0x200, 0x300, 0x400))


def entry(dice: random.Random) -> bytes:
    """One of a list of DWARF 5, of any kind; at times with numbers that are not there."""
    small, far = bytes([dice.randrange(6)]), dice.randrange(1 << 40).to_bytes(8, "little")
    long = bytes([dice.randrange(128, 256), dice.randrange(128)])
    kind = dice.choices(range(9), (1, 1, 1, 1, 7, 2, 1, 1, 0.1))[0]
    first = {1: small, 2: small, 3: small, 4: long, 5: far, 6: far, 7: far}.get(kind, b"")
    second = {2: small, 3: long, 4: long, 6: far, 7: long}.get(kind, b"")
    return bytes([kind]) + first + second


def old_entry(dice: random.Random) -> bytes:
    """Two addresses; at times a base or an end."""
    first = dice.choice((dice.randrange(1 << 12), 0, (1 << 64) - 1))
    return first.to_bytes(8, "little") + dice.choice((dice.randrange(1 << 12), 0)).to_bytes(8, "little")


@pytest.mark.parametrize("version", [4, 5])
def test_all_at_once_is_one_by_one(version: int) -> None:
    dice = random.Random(7)
    make = entry if version == 5 else old_entry
    texts = [b"".join(make(dice) for _ in range(dice.randrange(23))) for _ in range(700)]
    places = np.cumsum([0, *[len(text) for text in texts]])[:-1]
    section = b"".join(texts)
    data = DebugData("little", addresses=ADDRESSES, range_lists=section, ranges=section)
    shape = Shape("little", version, 4, 8)
    unit = Unit(UnitHeader(0, 0, 0, shape, 0, 0, 0), data, AbbreviationTable([], {}), low_pc=LOW_PC)
    lists = Lists(
        data,
        shape,
        places.copy(),
        np.full(places.size, LOW_PC, np.uint64),
        np.zeros(places.size, np.int64),
        np.zeros(places.size, np.bool_),
    )
    found = joined(list(read_lists(lists)))
    broken = 0
    for number, place in enumerate(places.tolist()):
        mine = found.of(found.entries == number)
        try:
            wanted = ranges_of(unit, Form.SEC_OFFSET, place)
        except (DwarfError, IndexError):
            broken += 1
            assert lists.is_broken[number]
            continue
        assert not lists.is_broken[number]
        assert list(zip(mine.starts.tolist(), mine.ends.tolist(), strict=True)) == wanted
    assert 0 < broken < 600


def test_lists_without_end_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("server.symbols.dwarf.range_columns.MAX_RANGES", 7)
    data = DebugData("little", range_lists=b"\4\1\2" * 7 + b"\0" + b"\4\1\2" * 6 + b"\0")
    lists = Lists(
        data,
        Shape("little", 5, 4, 8),
        np.array([0, 22], np.int64),
        np.zeros(2, np.uint64),
        np.zeros(2, np.int64),
        np.zeros(2, np.bool_),
    )
    assert [piece.entries.size for piece in read_lists(lists)] == [2] * 6 + [1]
    assert lists.is_broken.tolist() == [True, False]
