# SPDX-License-Identifier: Apache-2.0
"""Tables come when they are asked for, and the least used gives way when there is no room."""

import os
from collections.abc import Mapping

import numpy as np

from agent.kernel.ranges import Ranges
from agent.kernel.unwind_files import FileWalk
from agent.kernel.unwind_maps import TablePlace, WalkKind
from agent.kernel.unwind_rows import PackedTable, RuleNumbers, pack_table
from agent.records.binary import Binary, BinaryId, FileStamp
from agent.records.process import ProcessKey
from agent.records.unwind import RuleKind, TableMiss, UnwindTable, rule
from agent.runner.unwind_tables import UNUSED_WINDOWS, ResidentTables
from tests.support.drains import elf

FILE, COPY = FileStamp(7, 1000, 1), FileStamp(23, 1000, 2)
WEB, MAIL = ProcessKey(7, 1007, 1), ProcessKey(23, 1023, 1)


class FakeFiles:
    """What the kernel was told of files."""

    def __init__(self) -> None:
        self.of: dict[BinaryId, tuple[tuple[FileStamp, ...], FileWalk]] = {}

    def set(self, binary_id: BinaryId, stamps: tuple[FileStamp, ...], _segments: object, walk: FileWalk) -> None:
        self.of[binary_id] = (stamps, walk)

    def remove(self, binary_id: BinaryId) -> None:
        del self.of[binary_id]


class FakeMaps:
    """Room for some rows; what is given up is free after settle()."""

    def __init__(self, rows: int) -> None:
        self.files = FakeFiles()
        self.rules_refused = 0
        self._free = Ranges(rows)
        self._retired: list[TablePlace] = []

    @property
    def free_rows(self) -> int:
        return self._free.free_elements

    def has_room(self, rows: int) -> bool:
        return self._free.has_room(rows)

    @property
    def retired_rows(self) -> int:
        return sum(place.row_count for place in self._retired)

    def pack(self, table: UnwindTable) -> PackedTable | None:
        return pack_table(table, RuleNumbers())

    def put_table(self, packed: PackedTable) -> TablePlace | None:
        first = self._free.take(len(packed.rows))
        return None if first is None else TablePlace(first, len(packed.rows), 0, len(packed.page_starts), packed.low_page)

    def give_up_table(self, place: TablePlace) -> None:
        self._retired.append(place)

    def settle(self) -> None:
        for place in self._retired:
            self._free.give_back(place.first_row, place.row_count)
        self._retired.clear()


class FakeSource:
    """Answers what it was told; PENDING for the rest."""

    def __init__(self) -> None:
        self.answers: dict[BinaryId, UnwindTable | TableMiss] = {}
        self.asked: list[BinaryId] = []
        self.preferred: dict[BinaryId, float] = {}

    def get(self, binary_id: BinaryId, source: int | None, /) -> UnwindTable | TableMiss:
        assert source is None or os.fstat(source)
        self.asked.append(binary_id)
        return self.answers.get(binary_id, TableMiss.PENDING)

    def take_ready(self) -> set[BinaryId]:
        return {binary_id for binary_id in self.asked if binary_id in self.answers}

    def is_pending(self, binary_id: BinaryId, /) -> bool:
        return binary_id in self.asked

    def prefer(self, samples: Mapping[BinaryId, float], /) -> None:
        self.preferred = dict(samples)


def table_of(rows: int) -> UnwindTable:
    """So many rows within one page."""
    rules = np.array([rule(RuleKind.SP, n + 1) for n in range(rows)], np.uint32)
    return UnwindTable(np.arange(rows, dtype=np.uint64), rules)


def tables(rows: int, **answers: UnwindTable | TableMiss) -> tuple[ResidentTables, FakeMaps, FakeSource]:
    maps, source = FakeMaps(rows), FakeSource()
    source.answers = {elf(name).id: answer for name, answer in answers.items()}
    resident = ResidentTables(maps, source, lambda _: os.open("/dev/null", os.O_RDONLY), lambda _: (FILE,))  # type: ignore[arg-type]
    return resident, maps, source


def app(name: str) -> Binary:
    return elf(name)


def test_table_that_comes_later_changes_the_processes_that_map_it() -> None:
    resident, _, source = tables(100)
    assert resident.use(WEB, app("app")) is TableMiss.PENDING
    assert resident.is_waiting
    assert resident.arrived() == {}
    source.answers[app("app").id] = table_of(7)
    assert resident.arrived() == {WEB: {app("app").id}}
    assert not resident.is_waiting
    assert resident.use(WEB, app("app")) == TablePlace(0, 7, 0, 1, 0)


def test_source_is_told_how_much_is_used_what_is_waited_for() -> None:
    resident, _, source = tables(100, here=table_of(7))
    resident.use(WEB, app("here"))
    resident.use(WEB, app("web"))
    resident.use(MAIL, app("web"))
    resident.use(MAIL, app("mail"))
    resident.end_window({WEB: 7, MAIL: 23})
    assert source.preferred == {app("web").id: 30, app("mail").id: 23}


def test_a_binary_is_asked_for_once_for_all_processes() -> None:
    resident, _, source = tables(100, app=table_of(7))
    assert resident.use(WEB, app("app")) == resident.use(MAIL, app("app"))
    assert source.asked == [app("app").id]
    assert (resident.counts().tables, resident.counts().rows) == (1, 7)


def test_binary_without_table_is_counted_once_and_said() -> None:
    resident, _, _ = tables(100, bad=TableMiss.MALFORMED, go=TableMiss.NO_RULES)
    assert resident.use(WEB, app("bad")) is resident.use(MAIL, app("bad")) is TableMiss.MALFORMED
    assert resident.use(WEB, app("go")) is TableMiss.NO_RULES
    assert resident.counts().missing == 1


def test_table_of_a_file_without_end_is_missed_and_rules_without_a_number_are_told() -> None:
    wide = UnwindTable(np.array([0, 1 << 46], np.uint64), np.array([rule(RuleKind.SP, 1), RuleKind.NONE], np.uint32))
    resident, maps, _ = tables(100, wide=wide)
    assert resident.use(WEB, app("wide")) is TableMiss.TOO_LARGE
    maps.rules_refused = 7
    assert (resident.counts().missing, resident.counts().rules_refused) == (1, 7)


def test_least_used_table_gives_way_and_is_counted() -> None:
    resident, maps, _ = tables(30, old=table_of(23), new=table_of(13))
    resident.use(WEB, app("old"))
    resident.end_window({WEB: 3})
    assert resident.use(MAIL, app("new")) is TableMiss.PENDING
    assert resident.counts().waiting == 1
    assert resident.end_window({WEB: 3, MAIL: 97}) == {WEB}
    assert resident.use(WEB, app("old")) is TableMiss.PENDING
    maps.settle()
    assert resident.end_window({WEB: 3, MAIL: 97}) == {MAIL}
    assert isinstance(resident.use(MAIL, app("new")), TablePlace)
    counts = resident.counts()
    assert (counts.evicted, counts.tables, counts.rows, counts.waiting) == (1, 1, 13, 1)
    assert counts.no_room >= 1


def test_table_in_use_does_not_give_way_to_one_used_as_much() -> None:
    resident, maps, _ = tables(30, old=table_of(23), new=table_of(13))
    resident.use(WEB, app("old"))
    resident.use(MAIL, app("new"))
    for _ in range(7):
        assert resident.end_window({WEB: 23, MAIL: 23}) == set()
        maps.settle()
    assert resident.counts().evicted == 0


def test_table_that_finds_no_room_is_not_laid_out_again_before_there_is_some() -> None:
    resident, maps, source = tables(30, old=table_of(23), new=table_of(13))
    resident.use(WEB, app("old"))
    resident.use(MAIL, app("new"))
    for _ in range(7):
        resident.end_window({WEB: 23, MAIL: 23})
        maps.settle()
    assert source.asked == [app("old").id, app("new").id]
    resident.leave(WEB, [app("old").id])
    for _ in range(UNUSED_WINDOWS + 2):
        resident.end_window({MAIL: 23})
        maps.settle()
    assert source.asked == [app("old").id, app("new").id, app("new").id]
    assert isinstance(resident.placed(app("new").id), TablePlace)


def test_table_of_processes_that_are_gone_is_freed_after_a_while() -> None:
    resident, maps, _ = tables(30, app=table_of(23))
    resident.use(WEB, app("app"))
    resident.leave(WEB, [app("app").id])
    for _ in range(UNUSED_WINDOWS):
        resident.end_window({})
    assert resident.counts().tables == 1
    resident.end_window({})
    maps.settle()
    assert (resident.counts().tables, maps.free_rows) == (0, 30)


def test_files_are_told_of_while_their_table_is_there() -> None:
    resident, maps, source = tables(30, go=TableMiss.NO_RULES, bad=TableMiss.MALFORMED)
    for name in ("app", "go", "bad"):
        resident.use(WEB, app(name))
    assert maps.files.of == {app("go").id: ((FILE,), FileWalk(0, 0, 0, WalkKind.FRAME_POINTERS))}
    source.answers[app("app").id] = table_of(7)
    resident.arrived()
    assert maps.files.of[app("app").id] == ((FILE,), FileWalk(0, 0, 1, WalkKind.TABLE))
    resident.leave(WEB, [app("app").id])
    for _ in range(UNUSED_WINDOWS + 1):
        resident.end_window({})
    assert maps.files.of.keys() == {app("go").id}


def test_table_that_gives_way_takes_its_files_with_it() -> None:
    resident, maps, _ = tables(30, old=table_of(23), new=table_of(13))
    resident.use(WEB, app("old"))
    resident.end_window({WEB: 3})
    resident.use(MAIL, app("new"))
    resident.end_window({WEB: 3, MAIL: 97})
    assert maps.files.of == {}


def test_another_file_of_a_known_binary_is_told_of() -> None:
    maps, source, files = FakeMaps(30), FakeSource(), [FILE]
    source.answers[app("app").id] = table_of(7)
    resident = ResidentTables(maps, source, lambda _: None, lambda _: tuple(files))  # type: ignore[arg-type]
    resident.use(WEB, app("app"))
    files.append(COPY)
    resident.use(MAIL, app("app"))
    assert maps.files.of[app("app").id][0] == (FILE, COPY)


def test_a_binary_that_cannot_be_opened_for_lack_of_descriptors_is_asked_for_again() -> None:
    source, errors = FakeSource(), [OSError(24, "Too many open files")]
    source.answers = {app("app").id: table_of(7)}

    def opened(_: Binary) -> int:
        if errors:
            raise errors.pop()
        return os.open("/dev/null", os.O_RDONLY)

    resident = ResidentTables(FakeMaps(100), source, opened, lambda _: (FILE,))  # type: ignore[arg-type]
    assert resident.use(WEB, app("app")) is TableMiss.PENDING
    assert resident.is_waiting
    assert resident.arrived() == {WEB: {app("app").id}}
    assert not resident.is_waiting
