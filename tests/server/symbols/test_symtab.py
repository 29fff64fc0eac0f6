# SPDX-License-Identifier: Apache-2.0
"""Which symbol names an address: the rules, on symbols written by hand."""

import numpy as np
import pytest

from server.symbols import symtab
from server.symbols.symtab import RANK_GLOBAL, RANK_LOCAL, RANK_WEAK, Ranges, RawSymbols, Symbols, TooMany, choose, join
from tests.support.steps import steps

Row = tuple[int, int, int, str]
CODE = (0x1000, 0x2000)


def raw(*rows: Row) -> RawSymbols:
    """Columns out of (start, size, rank, name)."""
    blob = b"\0"
    places = []
    for row in rows:
        places.append(len(blob))
        blob += row[3].encode() + b"\0"
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    starts, sizes, ranks = np.array(columns[0], np.uint64), np.array(columns[1], np.uint64), np.array(columns[2], np.uint8)
    return RawSymbols(starts, sizes, ranks, np.array(places, np.int64), np.frombuffer(blob, np.uint8))


def chosen(*rows: Row, code: tuple[int, int] = CODE) -> list[tuple[int, int, str, bool]]:
    """The table as (start, end, name, is inexact)."""
    return listed(choose(raw(*rows), Ranges(np.array([code[0]], np.uint64), np.array([code[1]], np.uint64))))


def listed(symbols: Symbols) -> list[tuple[int, int, str, bool]]:
    bounds = symbols.name_bounds.tolist()
    names = [symbols.blob[bounds[i] : bounds[i + 1]].tobytes().decode() for i in range(len(symbols))]
    return list(zip(symbols.starts.tolist(), symbols.ends.tolist(), names, [bool(f) for f in symbols.flags], strict=True))


def test_sized_symbols_leave_gaps_unnamed() -> None:
    """C1: `__libc_init_first` has 5 bytes; what was stripped behind it is not its own."""
    assert chosen((0x1D00, 5, 0, "__libc_init_first"), (0x1DC0, 0x40, 0, "next")) == [
        (0x1D00, 0x1D05, "__libc_init_first", False),
        (0x1DC0, 0x1E00, "next", False),
    ]


def test_symbols_without_size_reach_to_the_next_and_say_so() -> None:
    """C2: labels of hand-written assembly."""
    assert chosen((0x11B2, 0, 2, "asmfn"), (0x11B5, 0, 2, "asmfn2"), (0x11BD, 3, 0, "main")) == [
        (0x11B2, 0x11B5, "asmfn", True),
        (0x11B5, 0x11BD, "asmfn2", True),
        (0x11BD, 0x11C0, "main", False),
    ]


def test_last_symbol_without_size_reaches_to_the_end_of_its_section() -> None:
    assert chosen((0x1F00, 0, 0, "tail")) == [(0x1F00, 0x2000, "tail", True)]


def test_symbol_without_size_inside_a_sized_one_is_not_used() -> None:
    assert chosen((0x1000, 0x100, 0, "whole"), (0x1040, 0, 2, "label")) == [(0x1000, 0x1100, "whole", False)]


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([(RANK_LOCAL, "a"), (RANK_WEAK, "aa"), (RANK_GLOBAL, "aaa")], "aaa"),
        ([(RANK_WEAK, "read"), (RANK_GLOBAL, "__read"), (RANK_GLOBAL, "__libc_read")], "__read"),
        ([(RANK_GLOBAL, "dup2"), (RANK_GLOBAL, "dup1")], "dup1"),
        ([(RANK_GLOBAL, "dup1"), (RANK_GLOBAL, "dup2")], "dup1"),
        ([(RANK_LOCAL, "bb"), (RANK_LOCAL, "ab"), (RANK_LOCAL, "aa"), (RANK_LOCAL, "ac")], "aa"),
    ],
)
def test_aliases_global_then_weak_then_local_then_shortest_then_lexical(names: list[tuple[int, str]], expected: str) -> None:
    rows = [(0x1840, 7, rank, name) for rank, name in names]
    assert chosen(*rows) == [(0x1840, 0x1847, expected, False)]
    assert chosen(*reversed(rows)) == [(0x1840, 0x1847, expected, False)]


def test_nested_symbols_split_the_outer_one() -> None:
    rows = [(0x1000, 0x100, 0, "outer"), (0x1020, 0x10, 0, "inner"), (0x1028, 0x4, 0, "core"), (0x1200, 8, 0, "apart")]
    assert chosen(*rows) == [
        (0x1000, 0x1020, "outer", False),
        (0x1020, 0x1028, "inner", False),
        (0x1028, 0x102C, "core", False),
        (0x102C, 0x1030, "inner", False),
        (0x1030, 0x1100, "outer", False),
        (0x1200, 0x1208, "apart", False),
    ]


def test_same_start_other_size_the_shorter_wins_where_it_reaches() -> None:
    rows = [(0x1000, 0x20, 0, "long"), (0x1000, 0x8, 2, "head")]
    assert chosen(*rows) == [(0x1000, 0x1008, "head", False), (0x1008, 0x1020, "long", False)]


def test_symbols_never_leave_their_section() -> None:
    rows = [(0x1FF0, 0xFFFF_FFFF_FFFF_FFFF, 0, "liar"), (0x0FFF, 7, 0, "before"), (0x2000, 7, 0, "etext"), (2**64 - 1, 7, 0, "far")]
    assert chosen(*rows) == [(0x1FF0, 0x2000, "liar", False)]


def test_mapping_symbols_and_local_labels_are_no_functions() -> None:
    rows = [(0x1000, 0, 2, n) for n in ("$x", "$d.7", ".L12", "", "$a", "$t.3")]
    assert chosen(*rows, (0x1000, 0, 2, "$xylophone")) == [(0x1000, 0x2000, "$xylophone", True)]
    assert chosen(*rows) == []


def test_nothing_in_nothing_out() -> None:
    assert chosen() == []
    none = np.zeros(0, np.uint64)
    assert listed(choose(raw((0x1000, 7, 0, "f")), Ranges(none, none))) == []
    assert listed(choose(join([]), Ranges(none, none))) == []


def test_union_of_two_tables() -> None:
    """C24: .symtab and .dynsym, or a stripped file and its debug file, add to each other."""
    both = join([raw((0x1000, 7, 2, "static_one")), raw((0x1100, 7, 0, "exported"), (0x1000, 7, 2, "static_two"))])
    code = Ranges(np.array([0x1000], np.uint64), np.array([0x2000], np.uint64))
    assert [row[2] for row in listed(choose(both, code))] == ["static_one", "exported"]


def test_names_that_point_outside_their_strings_are_dropped() -> None:
    good = raw((0x1000, 7, 0, "good"), (0x1100, 7, 0, "bad"))
    bad = RawSymbols(good.starts, good.sizes, good.ranks, np.array([1, 10**9], np.int64), good.strings)
    code = Ranges(np.array([0x1000], np.uint64), np.array([0x2000], np.uint64))
    assert [row[2] for row in listed(choose(bad, code))] == ["good"]


def test_a_name_is_cut_at_16_kib_and_all_names_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(chosen((0x1000, 7, 0, "x" * 20_000))[0][2]) == 16 << 10
    rows = [(0x1000 + i, 1, 0, "abcdefg") for i in range(3)]
    monkeypatch.setattr(symtab, "MAX_BLOB_BYTES", 21)
    assert len(chosen(*rows)) == 3
    monkeypatch.setattr(symtab, "MAX_BLOB_BYTES", 20)
    with pytest.raises(TooMany):
        chosen(*rows)


def test_a_count_of_symbols_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [(0x1000 + i, 1, 0, f"f{i}") for i in range(7)]
    monkeypatch.setattr(symtab, "MAX_SYMBOLS", 7)
    assert len(chosen(*rows)) == 7
    monkeypatch.setattr(symtab, "MAX_SYMBOLS", 6)
    with pytest.raises(TooMany):
        chosen(*rows)


def test_a_large_table_takes_one_pass() -> None:
    """Every second symbol has an alias."""

    def cost(symbols: int) -> int:
        rows = [(0x1000 + 32 * (i // 2), 23, i % 2, f"function_number_{i}") for i in range(symbols)]
        columns, code = raw(*rows), Ranges(np.array([0x1000], np.uint64), np.array([1 << 30], np.uint64))
        assert len(choose(columns, code)) == symbols // 2
        return steps(lambda: choose(columns, code))

    assert cost(20_000) < 8 * 20_000, "six lines a symbol are enough; each beside each would be thousands"


def test_random_symbols_agree_with_a_slow_reading_of_the_rules() -> None:
    """The winner at an address: of the sized ones that hold it, the last to start, then the first to end, then the alias rule."""
    random = np.random.default_rng(7)
    for _ in range(200):
        rows = [
            (
                int(random.integers(0x1000, 0x1040)),
                int(random.integers(1, 24)),
                int(random.integers(0, 3)),
                f"n{int(random.integers(0, 50))}",
            )
            for _ in range(int(random.integers(1, 9)))
        ]
        table = chosen(*rows)
        for address in range(0x1000, 0x1060):
            holding = [r for r in rows if r[0] <= address < r[0] + r[1]]
            best = min(holding, key=lambda r: (-r[0], r[0] + r[1], r[2], len(r[3]), r[3]), default=None)
            found = [row[2] for row in table if row[0] <= address < row[1]]
            assert found == ([best[3]] if best else []), (rows, hex(address))
