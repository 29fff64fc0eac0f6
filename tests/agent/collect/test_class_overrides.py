# SPDX-License-Identifier: Apache-2.0
"""Classes of one service are shown as others: in rows of waits, in the sums of time, and nowhere else."""

import numpy as np
import pytest

from agent.collect.class_overrides import ClassOverrides
from agent.collect.window import WindowBuilder
from agent.records.event_drain import EventAccount, EventColumn, EventDrain, WindowDrain
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns
from tests.support.drains import NO_LAYOUT, DrainOf, assert_balanced, facts, process

DB, WEB = process(7, service=b"db"), process(8, service=b"web")
NET_IS_POLL = ClassOverrides({b"db": {b"net": b"poll"}})


def _batch(overrides: ClassOverrides, event: EventDrain) -> pb.FoldedBatch:
    by_key = {one.key: one for one in (DB, WEB)}
    batch = WindowBuilder(overrides).build(WindowDrain(DrainOf().drain(), [event]), by_key.__getitem__, NO_LAYOUT, facts())
    for account in batch.accounts:
        assert_balanced(account)
    return batch


def _keys() -> np.ndarray[tuple[int], np.dtype[np.void]]:
    """Two rows of db, one of web."""
    drain = DrainOf().row(7, 1, comm=b"a").row(7, 1, comm=b"a").row(8, 1, comm=b"a").drain()
    return drain.keys


def _service(series: pb.Series) -> bytes:
    return next(label.value for label in series.labels if label.name == "service")


def _waits(kind: str, batch: pb.FoldedBatch) -> dict[tuple[bytes, bytes], int]:
    strings = columns.decode_strings(batch.strings, 1 << 20)
    rows = {}
    for series in batch.series:
        assert series.kind == kind
        for text, value in zip(
            columns.decode_column(series.new_keys.classes, 9), columns.decode_column(series.columns[0].values, 9), strict=True
        ):
            rows[_service(series), strings[int(text)]] = int(value)
    return rows


def _event(kind: str) -> EventDrain:
    counts = (EventColumn("count", "count", pb.MERGE_SUM, np.array([3, 5, 7], np.uint64)),)
    of_rows = np.array([1, 2, 1])
    return EventDrain(kind, 0, 1, _keys(), counts, EventAccount(15, 0), classes=(b"", b"net", b"poll"), class_of_row=of_rows)


def test_rows_of_the_service_named_become_one_with_those_of_the_class_shown() -> None:
    assert _waits("offcpu", _batch(NET_IS_POLL, _event("offcpu"))) == {(b"db", b"poll"): 8, (b"web", b"net"): 7}


def test_two_classes_may_swap() -> None:
    swap = ClassOverrides({b"db": {b"net": b"poll", b"poll": b"net"}})
    assert _waits("offcpu", _batch(swap, _event("offcpu"))) == {(b"db", b"poll"): 3, (b"db", b"net"): 5, (b"web", b"net"): 7}


def test_classes_of_another_kind_are_no_wait_classes() -> None:
    assert _waits("lock", _batch(NET_IS_POLL, _event("lock")))[b"db", b"net"] == 3


@pytest.mark.parametrize(
    ("overrides", "net", "poll"),
    [
        (ClassOverrides(), {b"db": 30, b"web": 40}, {b"db": 300, b"web": 400}),
        (NET_IS_POLL, {b"db": 0, b"web": 40}, {b"db": 330, b"web": 400}),
        (ClassOverrides({b"db": {b"net": b"poll", b"poll": b"net"}}), {b"db": 300, b"web": 40}, {b"db": 30, b"web": 400}),
        (ClassOverrides({b"db": {b"net": b"net"}, b"gone": {b"net": b"poll"}}), {b"db": 30, b"web": 40}, {b"db": 300, b"web": 400}),
    ],
)
def test_time_moves_from_column_to_column(overrides: ClassOverrides, net: dict[bytes, int], poll: dict[bytes, int]) -> None:
    of_rows = {"switches": [1, 1, 1], "net_ns": [10, 20, 40], "poll_ns": [100, 200, 400]}
    values = tuple(EventColumn(name, "ns", pb.MERGE_SUM, np.array(numbers, np.uint64)) for name, numbers in of_rows.items())
    batch = _batch(overrides, EventDrain("time", 0, 1, _keys(), values, EventAccount(3, 0)))
    found = {
        (_service(series), column.name): int(columns.decode_column(column.values, 9)[0])
        for series in batch.series
        for column in series.columns
    }
    assert {service: found.get((service, "net_ns"), 0) for service in net} == net
    assert {service: found[service, "poll_ns"] for service in poll} == poll


# Where functions lie: the stack of each row of _waits_of_kernel() has one address in one of them.
FUNCTIONS = {b"recvfrom": [(0xFFFF_8000_0000_1000, 0xFFFF_8000_0000_1100)], b"ep_poll": [(0xFFFF_8000_0000_2000, 0xFFFF_8000_0000_2100)]}


def _waits_in_the_kernel() -> EventDrain:
    """Of db: 3 ns in recvfrom, 5 ns one byte behind it, both net; 7 ns of class poll in ep_poll. Of web: 11 ns in recvfrom."""
    made = DrainOf()
    for pid, addr in ((7, 0x1080), (7, 0x1100), (7, 0x2000), (8, 0x1080)):
        made.row(pid, 1, kernel=[0xFFFF_8000_0000_0000 + addr, 0xFFFF_8000_0000_9000])
    drain = made.drain()
    ns = np.zeros(4, np.uint64)
    for row, addr in enumerate(drain.keys["kernel_stack"]):
        at = int(np.searchsorted(drain.stacks.hashes, addr))
        first = int(drain.stacks.addresses[drain.stacks.bounds[at]]) - 0xFFFF_8000_0000_0000
        ns[row] = {(7, 0x1080): 3, (7, 0x1100): 5, (7, 0x2000): 7, (8, 0x1080): 11}[int(drain.keys["pid"][row]), first]
    columns = (EventColumn("ns", "ns", pb.MERGE_SUM, ns),)
    of_rows = np.where(ns == 7, 2, 1)
    account = EventAccount(26, 0)
    return EventDrain("offcpu", 0, 1, drain.keys, columns, account, drain.stacks, classes=(b"", b"net", b"poll"), class_of_row=of_rows)


def test_waits_with_a_function_in_their_stack_change_their_class() -> None:
    overrides = ClassOverrides({b"db": {b"recvfrom": b"poll", b"ep_poll": b"other"}}, FUNCTIONS)
    assert _sums(_batch(overrides, _waits_in_the_kernel())) == {
        (b"db", b"poll"): 3,
        (b"db", b"net"): 5,
        (b"db", b"other"): 7,
        (b"web", b"net"): 11,
    }


def test_function_comes_before_a_class() -> None:
    overrides = ClassOverrides({b"db": {b"net": b"disk", b"recvfrom": b"poll"}}, FUNCTIONS)
    assert _sums(_batch(overrides, _waits_in_the_kernel()))[b"db", b"disk"] == 5


def test_function_that_is_not_there_changes_nothing() -> None:
    overrides = ClassOverrides({b"db": {b"recvfrom": b"poll"}}, {b"recvfrom": []})
    assert _sums(_batch(overrides, _waits_in_the_kernel()))[b"db", b"net"] == 8


def _sums(batch: pb.FoldedBatch) -> dict[tuple[bytes, bytes], int]:
    strings = columns.decode_strings(batch.strings, 1 << 20)
    found: dict[tuple[bytes, bytes], int] = {}
    for series in batch.series:
        values = columns.decode_column(series.columns[0].values, 9)
        for text, value in zip(columns.decode_column(series.new_keys.classes, 9), values, strict=True):
            key = _service(series), strings[int(text)]
            found[key] = found.get(key, 0) + int(value)
    return found


def test_time_of_such_waits_moves_and_what_was_too_short_for_a_stack_stays() -> None:
    names = {"switches": [4, 4], "net_ns": [10, 12], "poll_ns": [100, 100], "other_ns": [0, 0], "disk_ns": [0, 0]}
    keys = DrainOf().row(7, 1).row(8, 1).drain().keys
    values = tuple(EventColumn(name, "ns", pb.MERGE_SUM, np.array(numbers, np.uint64)) for name, numbers in names.items())
    time = EventDrain("time", 0, 1, keys, values, EventAccount(8, 0))
    overrides = ClassOverrides({b"db": {b"net": b"disk", b"recvfrom": b"poll", b"ep_poll": b"other"}}, FUNCTIONS)
    by_key = {one.key: one for one in (DB, WEB)}
    drains = WindowDrain(DrainOf().drain(), [_waits_in_the_kernel(), time])
    batch = WindowBuilder(overrides).build(drains, by_key.__getitem__, NO_LAYOUT, facts())
    shown = {
        (_service(series), column.name): int(columns.decode_column(column.values, 9)[0])
        for series in batch.series
        if series.kind == "time"
        for column in series.columns
    }
    assert [shown.get((b"db", name), 0) for name in ("net_ns", "disk_ns", "poll_ns", "other_ns")] == [0, 7, 100 - 7 + 3, 7]
    assert [shown.get((b"web", name), 0) for name in ("net_ns", "disk_ns", "poll_ns", "other_ns")] == [12, 0, 100, 0]
