# SPDX-License-Identifier: Apache-2.0
"""What the kernel is told of a process: its mappings, how each is walked, and when that changes."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from agent.kernel.unwind_maps import WalkKind
from agent.records.binary import BinaryId, Segment
from agent.records.event_drain import WindowDrain
from agent.records.process import Fate, MappingKind, Process, ProcessKey
from agent.records.unwind import TableMiss
from agent.runner import unwinder
from agent.runner.unwinder import Sources, Unwinder, samples_by_process
from tests.agent.runner.test_unwind_tables import FILE, FakeMaps, FakeSource, table_of
from tests.support.drains import DrainOf, elf, mapped, process


class ProcessMaps(FakeMaps):
    """Keeps what each process was given last."""

    def __init__(self) -> None:
        super().__init__(1000)
        self.of: dict[ProcessKey, npt.NDArray[np.void]] = {}
        self.has_room = True

    def set_process(self, key: ProcessKey, mappings: npt.NDArray[Any]) -> bool:
        if self.has_room:
            self.of[key] = mappings
        return self.has_room

    def remove_process(self, key: ProcessKey) -> None:
        self.of.pop(key, None)


class Host:
    """Processes by key; those it does not know are gone."""

    def __init__(self, *processes: Process) -> None:
        self.maps, self.source = ProcessMaps(), FakeSource()
        self.processes = {one.key: one for one in processes}
        self.changed = set(self.processes)
        sources = Sources(self.find, self.take_changed, self.open, lambda _: (FILE,), self.source)
        self.unwinder = Unwinder(self.maps, sources)  # type: ignore[arg-type]

    def put(self, one: Process) -> None:
        self.processes[one.key] = one
        self.changed.add(one.key)

    def take_changed(self) -> set[ProcessKey]:
        changed, self.changed = self.changed, set()
        return changed

    def find(self, key: ProcessKey) -> Process:
        return self.processes.get(key) or Process(key, Fate.EXITED, b"", b"", (), None, 0)

    def open(self, _: BinaryId) -> int | None:
        return None

    def kinds(self, key: ProcessKey) -> list[WalkKind]:
        return [WalkKind(kind) for kind in self.maps.of[key]["kind"].tolist()]


APP = elf("app")  # its code: file offset 0x1000, address 0x401000
WEB = process(7, mapped(0x7000_1000, 0x7000_5000, 0x1000, binary=APP))


def test_mapping_has_table_and_bias() -> None:
    host = Host(WEB)
    host.source.answers[APP.id] = table_of(7)
    host.unwinder.catch_up()
    (row,) = host.maps.of[WEB.key]
    assert (row["start"], row["end"], row["kind"], row["page_count"]) == (0x7000_1000, 0x7000_5000, WalkKind.TABLE, 1)
    assert row["bias"] == 0x7000_1000 - 0x401000


def test_bias_of_a_file_that_is_not_moved_is_zero_and_may_wrap() -> None:
    moved = replace(APP, segments=(Segment(0x1000, 0x7FFF_0000_1000, 0x9000, 0x9000, 5),))
    host = Host(process(7, mapped(0x401000, 0x405000, 0x1000, binary=APP)), process(23, mapped(0x1000, 0x5000, 0x1000, binary=moved)))
    host.source.answers[APP.id] = table_of(7)
    host.unwinder.catch_up()
    biases = [int(host.maps.of[key]["bias"][0]) for key in host.processes]
    assert biases == [0, (0x1000 - 0x7FFF_0000_1000) % (1 << 64)]


def test_what_has_no_table_says_how_it_is_walked() -> None:
    go, bad = elf("go"), elf("bad")
    one = process(
        7,
        mapped(0x1000, 0x2000, 0x1000, binary=go),
        mapped(0x3000, 0x4000, 0x1000, binary=bad),
        mapped(0x5000, 0x6000, kind=MappingKind.ANONYMOUS),
        mapped(0x7000, 0x8000, kind=MappingKind.JIT),
        mapped(0x9000, 0xA000, kind=MappingKind.UNREADABLE),
        mapped(0xB000, 0xC000, 0x100_0000, binary=go),
    )
    host = Host(one)
    host.source.answers |= {go.id: TableMiss.NO_RULES, bad.id: TableMiss.MALFORMED}
    host.unwinder.catch_up()
    none = WalkKind.NO_TABLE
    assert host.kinds(one.key) == [WalkKind.FRAME_POINTERS, none, WalkKind.JIT, WalkKind.JIT, none, none]


def test_table_that_comes_and_mappings_that_change_are_told() -> None:
    host = Host(WEB)
    host.unwinder.catch_up()
    assert host.kinds(WEB.key) == [WalkKind.NO_TABLE]
    assert host.unwinder.is_waiting
    host.source.answers[APP.id] = table_of(7)
    host.unwinder.catch_up()
    assert host.kinds(WEB.key) == [WalkKind.TABLE]
    grown = replace(WEB, mappings=(*WEB.mappings, mapped(0x7000_9000, 0x7000_A000, kind=MappingKind.JIT)), generation=2)
    host.put(grown)
    host.unwinder.catch_up()
    assert host.kinds(WEB.key) == [WalkKind.TABLE, WalkKind.JIT]


def test_process_is_left_alone_until_it_changes() -> None:
    host = Host(WEB)
    host.unwinder.catch_up()
    host.maps.of.clear()
    host.unwinder.catch_up()
    host.unwinder.end_window({WEB.key: 7})
    assert host.maps.of == {}


def test_process_that_is_gone_is_taken_out() -> None:
    host = Host(WEB)
    host.unwinder.catch_up()
    host.processes.clear()
    host.changed.add(WEB.key)
    host.unwinder.end_window({})
    assert host.maps.of == {}


def test_samples_of_kernel_threads_count_for_no_process() -> None:
    drain = DrainOf().row(7, 3, user=[1]).row(7, 4, user=[2]).row(2, 5, kernel=[9], is_kernel_thread=True)
    assert samples_by_process(WindowDrain(drain.drain())) == {ProcessKey(7, 1007, 1): 7}


def test_processes_without_room_are_counted_and_placed_when_there_is_some(monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host(WEB)
    host.maps.has_room = False
    host.unwinder.catch_up()
    host.unwinder.end_window({})
    assert (host.unwinder.left_out, host.maps.of) == (1, {})
    host.maps.has_room = True
    host.unwinder.end_window({})
    assert (host.unwinder.left_out, list(host.maps.of)) == (0, [WEB.key])
    monkeypatch.setattr(unwinder, "_MOST_KNOWN", 1)
    other = process(8, mapped(0x7000_1000, 0x7000_5000, 0x1000, binary=APP))
    host.put(other)
    host.put(WEB)  # Known already: it stays.
    host.unwinder.end_window({})
    assert (host.unwinder.left_out, list(host.maps.of)) == (1, [WEB.key])
    host.unwinder.forget([WEB.key])
    host.unwinder.end_window({})
    assert (host.unwinder.left_out, list(host.maps.of)) == (0, [other.key])
    host.unwinder.forget([other.key])
    assert host.unwinder.left_out == 0
