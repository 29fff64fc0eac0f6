# SPDX-License-Identifier: Apache-2.0
"""Tests of tables and reasons as bytes; hostile ones are tested in tests/proto/test_unwind_table.py."""

import numpy as np
import pytest

from agent.records.unwind import RuleKind, TableMiss, UnwindTable, rule
from agent.unwind.table_file import TableError, pack_miss, pack_table, unpack_table
from emberwatch.v1.unwind_table import pack_reason

DIGEST = bytes(range(16))


def test_a_table_comes_back() -> None:
    table = UnwindTable(np.array([0x1000, 0x1040], np.uint64), np.array([rule(RuleKind.SP, 1), 0], np.uint32))
    found = unpack_table(pack_table(table, DIGEST), DIGEST)
    assert isinstance(found, UnwindTable)
    assert (found.addresses.tolist(), found.rules.tolist()) == ([0x1000, 0x1040], [9, 0])


@pytest.mark.parametrize("miss", list(TableMiss))
def test_a_reason_comes_back(miss: TableMiss) -> None:
    assert unpack_table(pack_miss(miss, DIGEST), DIGEST) is miss


def test_an_unknown_reason_is_refused() -> None:
    with pytest.raises(TableError, match="unknown reason 99"):
        unpack_table(pack_reason(99, DIGEST), DIGEST)
