# SPDX-License-Identifier: Apache-2.0
"""Names of many entries at once: each is followed to what it sends on to a step further at a time (naming.py follows one by itself).

Entries that are written in an unusual way are left to naming.py.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.symbols.dwarf.abbrev import LINKAGE, ONWARD, Abbreviation
from server.symbols.dwarf.constants import SUPPLEMENT_REFERENCES, UNIT_REFERENCES, Form
from server.symbols.dwarf.lebs import numbers, ulebs
from server.symbols.dwarf.naming import MAX_STEPS, Names
from server.symbols.dwarf.source import DebugData
from server.symbols.dwarf.unit import Unit, text_at
from server.symbols.dwarf.walk import SUPPLEMENT

I64 = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]
U8 = npt.NDArray[np.uint8]

_NOWHERE = -1
_STRING_NUMBERS = {Form.STRX1: 1, Form.STRX2: 2, Form.STRX3: 3, Form.STRX4: 4}
_FAR = np.uint64(1 << 60)


def names_of(units: Sequence[Unit], supplement: Sequence[Unit], places: Sequence[int]) -> dict[int, bytes]:
    """The name that each entry leads to; b"" where it leads nowhere. Places are those of the walk."""
    return _Followed(units, supplement, places).names()


@dataclass(slots=True)
class _Group:
    """Entries with one abbreviation in one file."""

    rows: I64
    entries: I64
    """Where they lie in .debug_info."""
    units: I64
    shape: Abbreviation
    unit: Unit
    """One of theirs."""


class _Followed:
    """Entries on their way. A text is known by its place in .debug_str, plus SUPPLEMENT for that of the common file of dwz; files of split
    units have numbers of their own."""

    def __init__(self, units: Sequence[Unit], supplement: Sequence[Unit], places: Sequence[int]) -> None:
        sides = (sorted(units, key=_start), sorted(supplement, key=_start))
        self._all = [unit for side in sides for unit in side]
        self._first = (0, len(sides[0]), len(self._all))
        self._starts = np.array([_start(unit) for unit in self._all], np.int64)
        self._roots = np.array([unit.data.place + unit.header.root for unit in self._all], np.int64)
        self._ends = np.array([unit.data.place + unit.header.end for unit in self._all], np.int64)
        self._bases = np.array([unit.data.place for unit in self._all], np.int64)
        self._string_bases = np.array([unit.string_base for unit in self._all], np.int64)
        self._data: list[DebugData] = []
        seen: dict[int, int] = {}
        tables: dict[tuple[int, int], int] = {}
        self._data_of, self._table_of = np.zeros(len(self._all), np.int64), np.zeros(len(self._all), np.int64)
        for number, unit in enumerate(self._all):
            if id(unit.data) not in seen:
                seen[id(unit.data)] = len(self._data)
                self._data.append(unit.data)
            self._data_of[number] = seen[id(unit.data)]
            self._table_of[number] = tables.setdefault((id(unit.data), id(unit.table)), number)
        self._asked = places
        self._at = np.array(places, np.uint64)
        self._linkage, self._plain = np.full(self._at.size, _NOWHERE), np.full(self._at.size, _NOWHERE)
        self._files = np.zeros(self._at.size, np.int64), np.zeros(self._at.size, np.int64)
        """The file of the linkage name and that of the plain name."""
        self._odd = np.zeros(self._at.size, np.bool_)
        self._one_by_one = Names(units, supplement)

    def names(self) -> dict[int, bytes]:
        """Follow all to their ends."""
        going = np.arange(self._at.size)
        for _ in range(MAX_STEPS):
            if not going.size:
                break
            onward = np.zeros(self._at.size, np.bool_)
            for group in self._groups(going):
                onward[self._read(group)] = True
            going = np.flatnonzero(onward)
        best = np.where(self._linkage != _NOWHERE, self._linkage, self._plain)
        files = np.where(self._linkage != _NOWHERE, *self._files)
        texts: dict[tuple[int, int], bytes] = {}
        found = {}
        for place, is_odd, file, at in zip(self._asked, self._odd.tolist(), files.tolist(), best.tolist(), strict=True):
            if is_odd:
                found[place] = self._one_by_one.name(place)
                continue
            key = (file, at)
            text = texts.get(key)
            if text is None:
                text = texts[key] = text_at(self._data[file].strings, at) if at != _NOWHERE else b""
            found[place] = text
        return found

    def _groups(self, rows: I64) -> Iterator[_Group]:
        places = self._at[rows]
        is_side = (places & np.uint64(SUPPLEMENT) > 0).astype(np.int64)
        near = (places & np.uint64(SUPPLEMENT - 1)).astype(np.int64)
        units = np.full(rows.size, -1)
        for side in (0, 1):
            low, high = self._first[side : side + 2]
            here = is_side == side
            found = np.searchsorted(self._starts[low:high], near[here], "right") - 1
            units[here] = np.where(found >= 0, found + low, -1)
        is_inside = (units >= 0) & (near >= self._roots[units]) & (near < self._ends[units]) if self._all else units >= 0
        rows, units, near = rows[is_inside], units[is_inside], near[is_inside]
        entries = near - self._bases[units]
        shapes: dict[int, tuple[Abbreviation, Unit]] = {}
        likeness = np.full(rows.size, -1)
        for file, data in enumerate(self._data):
            here = np.flatnonzero(self._data_of[units] == file)
            if not here.size:
                continue
            codes = ulebs(np.frombuffer(data.info, np.uint8), entries[here])[0]
            keys = self._table_of[units[here]] << 32 | np.minimum(codes, np.uint64((1 << 32) - 1)).astype(np.int64)
            distinct, which = np.unique(keys, return_inverse=True)
            kinds = np.full(distinct.size, -1)
            for number, key in enumerate(distinct.tolist()):
                unit = self._all[key >> 32]
                shape = unit.table.by_code.get(key & (1 << 32) - 1)
                if shape is not None:
                    kinds[number] = id(shape)
                    shapes.setdefault(id(shape), (shape, unit))
            likeness[here] = kinds[which]
        order = np.argsort(likeness, kind="stable")
        order = order[likeness[order] >= 0]
        bounds = np.flatnonzero(np.diff(likeness[order], prepend=-1, append=-1)).tolist()
        for low, high in itertools.pairwise(bounds):
            some = order[low:high]
            yield _Group(rows[some], entries[some], units[some], *shapes[int(likeness[some[0]])])

    def _read(self, group: _Group) -> I64:
        """Take what names the entries; the rows that are sent on."""
        info, byte_order = np.frombuffer(group.unit.data.info, np.uint8), group.unit.header.shape.byte_order
        if group.shape.names is None:
            return self._leave(group.rows)
        is_done = np.zeros(group.rows.size, np.bool_)
        target: U64 | None = None
        file = int(self._data_of[group.units[0]])
        for attribute, form, offset in group.shape.names:
            size = group.unit.header.shape.size_of(form)
            if size is None or not 0 < size <= 8 or int(group.entries.max()) + offset + size > info.size:
                return self._leave(group.rows)
            values = numbers(info, group.entries + offset, size, byte_order)
            if attribute in ONWARD:
                target = self._targets(group, form, values) if target is None else target
                continue
            texts = self._texts(group, form, values)
            if texts is None:
                return self._leave(group.rows)
            known, files = (self._linkage, self._files[0]) if attribute in LINKAGE else (self._plain, self._files[1])
            fresh = (texts != _NOWHERE) & (known[group.rows] == _NOWHERE)
            known[group.rows[fresh]], files[group.rows[fresh]] = texts[fresh], file
            is_done |= (texts != _NOWHERE) & (attribute in LINKAGE)
        if target is None:
            return group.rows[:0]
        self._at[group.rows] = target
        return group.rows[~is_done]

    def _leave(self, rows: I64) -> I64:
        self._odd[rows] = True
        return rows[:0]

    def _texts(self, group: _Group, form: int, values: U64) -> I64 | None:
        """Places in .debug_str of texts that are there and not empty; None for forms whose texts lie elsewhere."""
        data = group.unit.data
        if form in _STRING_NUMBERS:
            width, offsets = group.unit.header.shape.offset_bytes, np.frombuffer(data.string_offsets, np.uint8)
            places = self._string_bases[group.units] + values.astype(np.int64) * width
            is_there = (places >= 0) & (places <= offsets.size - width)
            values = np.full(values.size, _FAR)
            values[is_there] = numbers(offsets, places[is_there], width, data.byte_order)
        elif form != Form.STRP:
            return None
        strings = np.frombuffer(data.strings, np.uint8)
        is_text = values < np.uint64(strings.size)
        near = np.where(is_text, values, 0).astype(np.int64)
        is_text[is_text] = strings[near[is_text]] != 0
        return np.where(is_text, near, _NOWHERE)

    def _targets(self, group: _Group, form: int, values: U64) -> U64:
        if form in SUPPLEMENT_REFERENCES:
            return np.uint64(SUPPLEMENT) | values & np.uint64(SUPPLEMENT - 1)
        bases = self._starts[group.units] if form in UNIT_REFERENCES else self._bases[group.units]
        side = self._at[group.rows] & np.uint64(SUPPLEMENT)
        return side | bases.astype(np.uint64) + values & np.uint64(SUPPLEMENT - 1)


def _start(unit: Unit) -> int:
    return unit.data.place + unit.header.start
