# SPDX-License-Identifier: Apache-2.0
"""Frames of every kind to names, and what is remembered between two calls."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import marks_pb2
from server.profile.names import CodeKind, FrameColumns, FrameNames
from server.store.protocol import BinaryInfo
from server.symbols.build_result import Quality
from server.symbols.identity import key_of
from server.symbols.namebook import NameBook
from server.symbols.symtab import Ranges, choose
from server.symbols.table import Table, TableFacts, Traits
from tests.server.symbols.inline_tables import shop
from tests.server.symbols.test_symtab import raw

EMPTY, FILE, KERNEL, MODULE, JIT, BPF, MARK = range(7)
Frame = tuple[int, int, int, int]
APP = BinaryInfo(
    1, pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_GNU, b"\1" * 20, b"\2" * 16, b"/srv/app", ((0x1000, 0x401000, 0x1000, 0x1000, 5),), 0
)
LIBC = replace(APP, row_id=2, build_id=b"\3" * 20, path=b"/lib/libc.so.6")
LINUX = replace(APP, row_id=3, kind=pb.BINARY_KIND_KERNEL, build_id=b"\4" * 20, content_hash=b"", path=b"", segments=())
EXT4 = replace(LINUX, row_id=4, kind=pb.BINARY_KIND_MODULE, build_id=b"\5" * 20, path=b"ext4")
GO_APP = replace(APP, row_id=5, build_id_kind=pb.BUILD_ID_KIND_GO, build_id=b"go-build", path=b"/srv/gateway")
BINARIES = {binary.row_id: binary for binary in (APP, LIBC, LINUX, EXT4, GO_APP)}
STRINGS = [b"", b"Lsun/net/Sel$3;::run", b"py::fib:/srv/app.py", b"on_switch", b"bad\xff;\n</script>"]


def table(binary: BinaryInfo, *rows: tuple[int, int, int, str], traits: Traits = Traits.NONE) -> Table:
    code = Ranges(np.array([0], np.uint64), np.array([1 << 40], np.uint64))
    return Table(TableFacts(key_of(binary), Quality.FULL, traits), choose(raw(*rows), code), 0)


TABLES = {
    1: table(
        APP,
        (0x401000, 0x40, 0, "_ZN3app4workEi"),
        (0x401040, 0x40, 0, "_ZN3app4workEi.cold"),
        (0x401080, 0x40, 0, "_RNvCs1_1ru7n_nga1b"),
        (0x4010C0, 0x40, 0, "plain"),
    ),
    3: table(LINUX, (0x40, 0x40, 0, "schedule"), (0x80, 0x40, 2, "finish_task_switch.isra.0")),
    4: table(EXT4, (0x0, 0x40, 0, "ext4_read")),
    5: table(GO_APP, (0x401000, 0x40, 0, "net/http.(*conn).serve"), traits=Traits.GO),
}


def columns(*frames: Frame) -> FrameColumns:
    kinds, refs, offsets, is_return = zip((EMPTY, 0, 0, 0), *frames, strict=True)
    return FrameColumns(np.array(kinds, np.uint8), np.array(refs, np.uint32), np.array(offsets, np.uint64), np.array(is_return, np.uint8))


class Source:
    """Gives binaries and tables, and counts how often it is asked."""

    def __init__(self) -> None:
        self.tables = dict(TABLES)
        self.generation = 1
        self.asked: list[list[int]] = []

    def binaries(self, row_ids: Sequence[int]) -> list[BinaryInfo]:
        self.asked.append(list(row_ids))
        return [BINARIES[row_id] for row_id in row_ids]

    def names(self, book: NameBook, frames: FrameColumns) -> FrameNames:
        return book.names(frames, STRINGS, self.binaries, (lambda binary: self.tables.get(binary.row_id), self.generation))


def shown(names: FrameNames) -> list[tuple[str, str, CodeKind]]:
    """(name, binary, code) of each frame but the empty one."""
    functions = names.functions
    return [(functions.names[i], functions.binaries[i], CodeKind(functions.codes[i])) for i in names.function.tolist()[1:]]


def named(*frames: Frame) -> list[tuple[str, str, CodeKind]]:
    return shown(Source().names(NameBook(), columns(*frames)))


def test_file_frames_by_language() -> None:
    frames = [(FILE, 1, 0x1000, 0), (FILE, 1, 0x1080, 0), (FILE, 1, 0x10C0, 0), (FILE, 5, 0x1007, 0)]
    assert named(*frames) == [
        ("app::work(int)", "app", CodeKind.CPP),
        ("r::ünï", "app", CodeKind.RUST),
        ("plain", "app", CodeKind.NATIVE),
        ("net/http.(*conn).serve", "gateway", CodeKind.GO),
    ]


def test_functions_know_the_builds_they_were_met_in() -> None:
    source, book = Source(), NameBook()
    functions = source.names(book, columns((FILE, 1, 0x10C0, 0), (FILE, 2, 0x10, 0), (MARK, 0, marks_pb2.MARK_EXITED, 0))).functions
    builds = dict(zip(functions.names, functions.builds, strict=True))
    assert (builds["plain"], builds["[unknown] libc.so.6+0x10"], builds["[exited]"]) == (("01" * 20,), ("03" * 20,), ())


def test_cold_part_is_the_same_function() -> None:
    """C7"""
    names = Source().names(NameBook(), columns((FILE, 1, 0x1000, 0), (FILE, 1, 0x1050, 0)))
    assert names.function[1] == names.function[2]
    assert names.functions.raw_names[names.function[1]] == "_ZN3app4workEi"


def test_return_address_belongs_to_the_call() -> None:
    assert [row[0] for row in named((FILE, 1, 0x1080, 0), (FILE, 1, 0x1080, 1))] == ["r::ünï", "app::work(int)"]


def test_kernel_modules_and_bpf() -> None:
    frames = [
        (KERNEL, 3, 0x41, 0),
        (KERNEL, 3, 0x80, 1),
        (KERNEL, 3, 0x81, 1),
        (MODULE, 4, 0x7, 1),
        (BPF, 3, 0x1234, 0),
        (BPF, 0, 0xABC, 0),
    ]
    assert named(*frames) == [
        ("schedule", "kernel", CodeKind.KERNEL),
        ("schedule", "kernel", CodeKind.KERNEL),
        ("finish_task_switch", "kernel", CodeKind.KERNEL),
        ("ext4_read", "ext4", CodeKind.KERNEL),
        ("bpf_prog_on_switch", "bpf", CodeKind.KERNEL),
        ("bpf_prog_0000000000000abc", "bpf", CodeKind.KERNEL),
    ]


def test_unknown_frames_give_module_and_address_and_are_not_named() -> None:
    frames = [(FILE, 2, 0x1010, 1), (FILE, 1, 0x1200, 0), (FILE, 1, 0x9000, 0), (KERNEL, 3, 0xF00, 0), (MODULE, 4, 0x77, 0)]
    names = Source().names(NameBook(), columns(*frames))
    assert shown(names) == [
        ("[unknown] libc.so.6+0x401010", "libc.so.6 (build 03030303)", CodeKind.UNKNOWN),  # No table.
        ("[unknown] app+0x401200", "app (build 01010101)", CodeKind.UNKNOWN),  # No symbol there.
        ("[unknown] app+0x9000", "app (build 01010101)", CodeKind.UNKNOWN),  # In no segment: the file offset.
        ("[unknown] kernel+0xf00", "kernel (build 04040404)", CodeKind.KERNEL),
        ("[unknown] ext4+0x77", "ext4 (build 05050505)", CodeKind.KERNEL),
    ]
    assert not names.functions.is_named[names.function].any()


def test_marks_and_jit_names() -> None:
    frames = [
        (MARK, 0, marks_pb2.MARK_TRUNCATED, 0),
        (MARK, 0, marks_pb2.MARK_STACK_LOST_ENOMEM, 0),
        (JIT, 1, 0, 0),
        (JIT, 2, 0, 1),
        (JIT, 4, 0, 0),
        (JIT, 99, 0, 0),
    ]
    names = Source().names(NameBook(), columns(*frames))
    assert shown(names) == [
        ("[truncated]", "", CodeKind.MARK),
        ("[stack lost: ENOMEM]", "", CodeKind.MARK),
        ("sun.net.Sel$3.run", "", CodeKind.JAVA),
        ("py::fib:/srv/app.py", "", CodeKind.PYTHON),
        ("bad\\xff;\n</script>", "", CodeKind.NATIVE),
        ("[jit]", "", CodeKind.NATIVE),
    ]
    assert names.functions.is_named[names.function[1:]].all()


def test_a_kind_of_a_newer_agent_is_unknown() -> None:
    assert named((77, 1, 0x1000, 0)) == [("[unknown]", "", CodeKind.UNKNOWN)]


def test_only_new_frames_are_looked_up_and_old_numbers_stay() -> None:
    source, book = Source(), NameBook()
    frames = [(FILE, 1, 0x1000, 0), (KERNEL, 3, 0x41, 0)]
    first = source.names(book, columns(*frames))
    assert source.names(book, columns(*frames)) is first
    longer = source.names(book, columns(*frames, (MODULE, 4, 0x7, 0)))
    assert longer.function[:3].tolist() == first.function.tolist()
    assert source.asked == [[1, 3], [4]]
    assert len(first.functions) < len(longer.functions)


def test_an_older_and_shorter_dictionary_gets_a_part_of_what_is_known() -> None:
    source, book = Source(), NameBook()
    frames = [(FILE, 1, 0x1000, 0), (KERNEL, 3, 0x41, 0), (MODULE, 4, 0x7, 0)]
    whole = source.names(book, columns(*frames))
    part = source.names(book, columns(*frames[:2]))
    assert part.function.tolist() == whole.function.tolist()[:3]
    assert source.names(book, columns(*frames)) is whole
    assert len(source.asked) == 1


def test_a_table_that_comes_late_names_the_past() -> None:
    source, book = Source(), NameBook()
    late = source.tables.pop(1)
    frames = columns((FILE, 1, 0x1000, 0))
    assert shown(source.names(book, frames))[0][0] == "[unknown] app+0x401000"
    source.tables[1] = late
    assert shown(source.names(book, frames))[0][0] == "[unknown] app+0x401000"  # Nobody said that something changed.
    source.generation += 1
    assert shown(source.names(book, frames))[0][0] == "app::work(int)"


def test_a_better_table_replaces_names() -> None:
    """C41"""
    source, book = Source(), NameBook()
    frames = columns((FILE, 1, 0x1000, 0))
    source.names(book, frames)
    source.tables[1] = table(APP, (0x401000, 0x40, 0, "better"))
    source.generation += 1
    assert shown(source.names(book, frames))[0][0] == "better"


def test_a_store_that_starts_anew_is_noticed() -> None:
    source, book = Source(), NameBook()
    source.names(book, columns((FILE, 1, 0x1000, 0), (FILE, 1, 0x10C0, 0)))
    assert [row[0] for row in shown(source.names(book, columns((FILE, 1, 0x10C0, 0))))] == ["plain"]
    other = source.names(book, columns((FILE, 1, 0x1080, 0), (KERNEL, 3, 0x41, 0), (MODULE, 4, 0x7, 0)))
    assert [row[0] for row in shown(other)] == ["r::ünï", "schedule", "ext4_read"]


def test_no_frames_at_all() -> None:
    none = FrameColumns(np.zeros(0, np.uint8), np.zeros(0, np.uint32), np.zeros(0, np.uint64), np.zeros(0, np.uint8))
    assert Source().names(NameBook(), none).function.size == 0


def test_frames_of_debug_data_have_parts_with_places() -> None:
    code = Ranges(np.array([0], np.uint64), np.array([1 << 40], np.uint64))
    symbols = choose(raw((0x401000, 0x100, 0, "main"), (0x401000, 0x100, 2, "alias_of_main")), code)
    source = Source()
    source.tables[1] = Table(TableFacts(key_of(APP), Quality.DWARF, Traits.NONE), symbols, 0, shop().shifted(0x401000 - 0x100))
    book, frames = NameBook(), columns((FILE, 1, 0x1000, 0), (FILE, 1, 0x1025, 0), (MARK, 0, marks_pb2.MARK_TRUNCATED, 0))
    names = source.names(book, frames)
    parts = names.all_parts()
    found = [
        (names.functions.names[function], parts.files[file], line, bool(is_inlined))
        for function, file, line, is_inlined in zip(
            parts.function.tolist(), parts.file.tolist(), parts.line.tolist(), parts.is_inlined.tolist(), strict=True
        )
    ]
    assert parts.bounds.tolist() == [0, 1, 2, 5, 6]
    assert found[1:] == [
        ("main", "/src/main.c", 3, False),
        ("main", "/src/main.c", 7, False),
        ("half", "/src/half.h", 23, True),
        ("third", "/src/half.h", 13, True),
        ("[truncated]", "", 0, False),
    ]
    assert [names.functions.names[row] for row in names.function.tolist()] == ["[unknown]", "main", "main", "[truncated]"]
    assert names.functions.aliases[names.function[1]] == ("alias_of_main",)
    longer = FrameColumns(*(np.append(column, column[1]) for column in (frames.kinds, frames.refs, frames.offsets, frames.is_return)))
    grown = source.names(book, longer).all_parts()
    assert grown.bounds.tolist() == [0, 1, 2, 5, 6, 7]
    assert grown.line.tolist() == [0, 3, 7, 23, 13, 0, 3]
    assert source.names(book, frames).all_parts().bounds.tolist() == parts.bounds.tolist()
