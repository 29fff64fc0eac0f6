# SPDX-License-Identifier: Apache-2.0
"""Stacks of connect become rows by process, peer and stack."""

import ipaddress

import numpy as np

from agent.profilers.tcp_connects import CONNECT_KEY, CONNECT_SUMS, rows_of_connects


def test_each_stack_stands_under_its_peer() -> None:
    keys = np.zeros(2, CONNECT_KEY)
    for key, stack, port in zip(keys, (23, 7), (5432, 6379), strict=True):
        key["end"]["address"] = np.void(ipaddress.IPv6Address("::ffff:10.0.0.7").packed)
        key["end"]["pid"], key["end"]["direction"], key["end"]["port"], key["user_stack"] = 7, 1, port, stack
    rows = rows_of_connects([(keys, np.array([(46, 23), (1, 1)], CONNECT_SUMS))])
    assert [rows.objects[at] for at in rows.object_of_row] == [b"out 10.0.0.7:5432", b"out 10.0.0.7:6379"]
    assert rows.keys["user_stack"].tolist() == [23, 7]
    assert [(column.name, column.values.tolist()) for column in rows.columns] == [("count", [46, 1]), ("observed", [23, 1])]


def test_nobody_connects_is_no_row() -> None:
    assert len(rows_of_connects([]).keys) == 0
