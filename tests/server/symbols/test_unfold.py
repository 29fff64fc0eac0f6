# SPDX-License-Identifier: Apache-2.0
"""What frames are made of, and who gives the names."""

import numpy as np

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.build_result import Quality
from server.symbols.identity import BinaryKey
from server.symbols.inlines import Inlines
from server.symbols.resolve import Placed
from server.symbols.symtab import Ranges, choose
from server.symbols.table import Table, TableFacts, Traits
from server.symbols.unfold import unfold
from tests.server.symbols.inline_tables import inlines, shop
from tests.server.symbols.test_symtab import raw

KEY = BinaryKey(pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_NONE, b"", b"\7" * 16)
Part = tuple[str, str, int, bool]


def table(some: Inlines | None, *symbols: tuple[int, int, int, str]) -> Table:
    code = Ranges(np.array([0], np.uint64), np.array([0x1000], np.uint64))
    return Table(TableFacts(KEY, Quality.DWARF, Traits.NONE), choose(raw(*symbols), code), 0, some)


def parts_of(made: Table, *addresses: int) -> list[list[Part]]:
    """Name, file, line and whether inlined of the parts of each address, outermost first."""
    where = np.array(addresses, np.uint64)
    places = np.full(where.size, -1) if made.inlines is None else made.inlines.find(where)
    unfolded = unfold(Placed(where, made.find(where), places), made)
    found: list[list[Part]] = [[] for _ in addresses]
    for at in range(len(unfolded)):
        symbol, text = int(unfolded.symbols[at]), int(unfolded.names[at])
        name = made.raw_names(np.array([symbol]))[0] if symbol >= 0 else made.inlines.text(text) if made.inlines else b""
        file = made.inlines.text(int(unfolded.files[at])) if made.inlines else b""
        part = (name.decode(), file.decode(), int(unfolded.lines[at]), bool(unfolded.is_inlined[at]))
        found[int(unfolded.frames[at])].append(part)
    return found


def test_an_inlined_call_is_a_part_of_its_own_and_callers_stand_where_they_called() -> None:
    made = table(shop(), (0x100, 0x100, 0, "main"))
    assert parts_of(made, 0x100, 0x115, 0x125) == [
        [("main", "/src/main.c", 3, False)],
        [("main", "/src/main.c", 7, False), ("half", "/src/half.h", 11, True)],
        [("main", "/src/main.c", 7, False), ("half", "/src/half.h", 23, True), ("third", "/src/half.h", 13, True)],
    ]


def test_line_0_is_no_line() -> None:
    """C14: not the line before."""
    made = table(shop(), (0x100, 0x100, 0, "main"))
    assert parts_of(made, 0x135)[0][1] == ("half", "/src/half.h", 0, True)


def test_a_sized_symbol_names_the_outermost_function() -> None:
    made = table(shop(), (0x100, 0x100, 0, "main.isra.0"))
    assert [name for name, *_ in parts_of(made, 0x115)[0]] == ["main.isra.0", "half"]


def test_debug_data_names_what_has_no_symbol_or_one_without_a_size() -> None:
    assert [name for name, *_ in parts_of(table(shop()), 0x115)[0]] == ["main", "half"]
    assert [name for name, *_ in parts_of(table(shop(), (0xF0, 0, 0, "label")), 0x115)[0]] == ["main", "half"]


def test_what_nobody_knows_is_one_part_without_a_name() -> None:
    assert parts_of(table(shop()), 0x250, 0x10) == [[("", "", 0, False)]] * 2
    assert parts_of(table(None), 0x250) == [[("", "", 0, False)]]


def test_a_symbol_behind_the_debug_data_has_neither_line_nor_calls() -> None:
    assert parts_of(table(shop(), (0x200, 0x40, 0, "asm")), 0x210) == [[("asm", "", 0, False)]]


def test_a_function_known_by_lines_alone_keeps_them() -> None:
    """Assembly with -g: rows of lines, and no entry of a function."""
    some = inlines([b"/src/x.s"], [(0x100, 0, 1, 7), (0x180, 0, 0, 0)], [])
    assert parts_of(table(some, (0x100, 0x80, 0, "asm")), 0x110) == [[("asm", "/src/x.s", 7, False)]]


def test_an_inlined_call_without_a_name_is_left_out() -> None:
    """Its name is in the common file of dwz, which is not there."""
    texts, nodes = [b"main", b"third", b"/src/a.c"], [(0, 1, 0, 0), (1, 0, 3, 7), (2, 2, 3, 23)]
    some = inlines(texts, [(0x100, 3, 3, 5), (0x180, 0, 0, 0)], nodes)
    assert parts_of(table(some), 0x110) == [[("main", "/src/a.c", 7, False), ("third", "/src/a.c", 5, True)]]
