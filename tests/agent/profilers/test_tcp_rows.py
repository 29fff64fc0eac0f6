# SPDX-License-Identifier: Apache-2.0
"""Sums of endpoints become rows with names that people know."""

import ipaddress

import numpy as np
import pytest

from agent.profilers.tcp_rows import COLUMNS, OTHER_PEERS, TCP_KEY, TCP_SUMS, endpoint_name, rows_of_endpoints

OUT, IN = 1, 2
MAPPED = ipaddress.IPv6Address("::ffff:10.0.0.7").packed


@pytest.mark.parametrize(
    ("address", "port", "direction", "name"),
    [
        (MAPPED, 5432, OUT, b"out 10.0.0.7:5432"),
        (ipaddress.IPv6Address("2001:db8::1").packed, 443, OUT, b"out [2001:db8::1]:443"),
        (bytes(16), 8080, IN, b"in :8080"),
        (bytes(16), 0, OUT, OTHER_PEERS),
    ],
)
def test_endpoints_are_named(address: bytes, port: int, direction: int, name: bytes) -> None:
    assert endpoint_name(address, port, direction) == name


def test_each_key_is_a_row_with_all_columns() -> None:
    keys = np.zeros(2, TCP_KEY)
    keys["pid"], keys["start_boot_ns"], keys["exec_id"] = (7, 11), (1007, 1011), (1, 2)
    keys["address"] = [np.void(MAPPED), np.void(bytes(16))]
    keys["port"], keys["direction"], keys["is_kernel_thread"] = (5432, 80), (OUT, IN), (0, 1)
    sums = np.zeros(2, TCP_SUMS)
    sums["values"] = np.arange(2 * len(COLUMNS)).reshape(2, -1)
    sums["rtts"][0][3] = 23
    rows = rows_of_endpoints([(keys, sums)])
    assert [rows.objects[at] for at in rows.object_of_row] == [b"out 10.0.0.7:5432", b"in :80"]
    assert rows.keys["pid"].tolist() == [7, 11]
    assert rows.keys["is_kernel_thread"].tolist() == [0, 1]
    assert [column.name for column in rows.columns] == [*(name for name, _, _ in COLUMNS), "rtt_03"]
    assert rows.columns[1].values.tolist() == [1, 1 + len(COLUMNS)]
    assert rows.columns[-1].values.tolist() == [23, 0]


def test_nothing_is_no_row() -> None:
    rows = rows_of_endpoints(())
    assert (len(rows.keys), rows.objects) == (0, (b"",))
