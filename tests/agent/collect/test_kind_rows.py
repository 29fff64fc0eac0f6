# SPDX-License-Identifier: Apache-2.0
"""All kinds of a window as one table: each finds its rows, its second stacks and the stacks of all again."""

import numpy as np

from agent.collect.kind_rows import row_table
from agent.records.event_drain import EventAccount, EventColumn, EventDrain, WindowDrain, event_keys
from emberwatch.v1 import batch_pb2 as pb
from tests.support.drains import DrainOf, events_of


def test_rows_of_each_kind_lie_together_and_second_stacks_behind_all() -> None:
    cpu, waits = DrainOf().row(7, 3, user=[0x10]), DrainOf().row(8, 5, user=[0x20]).row(9, 7, user=[0x10])
    seconds = event_keys(2)
    seconds["kernel_stack"][1] = 77
    table = row_table(WindowDrain(cpu.drain(), [events_of("offcpu", waits, seconds=seconds)]))
    assert [(kind.kind, kind.first, kind.end) for kind in table.kinds] == [("cpu", 0, 1), ("offcpu", 1, 3)]
    assert table.keys["pid"].tolist() == [7, 8, 9, 0]
    assert table.counts.tolist() == [3, 5, 7, 0]
    assert table.kind_of_row.tolist() == [0, 1, 1, -1]
    assert table.kinds[1].second_of_row.tolist() == [-1, 3]
    assert table.keys["kernel_stack"][3] == 77


def test_kind_without_stacks_has_rows_without() -> None:
    columns = (EventColumn("switches", "count", pb.MERGE_SUM, np.ones(1, np.uint64)),)
    drain = EventDrain("time", 0, 1, event_keys(1), columns, EventAccount(1, 0))
    table = row_table(WindowDrain(DrainOf().row(7, 3, user=[0x10]).drain(), [drain]))
    assert table.has_stack.tolist() == [True, False]
