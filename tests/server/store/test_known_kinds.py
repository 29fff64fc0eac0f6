# SPDX-License-Identifier: Apache-2.0
"""The list of kinds is that of the agent: each column it sends is there, with its unit and how it merges."""

from dataclasses import fields

import numpy as np
import pytest

from agent.config import KINDS as AGENT_KINDS
from agent.profilers.breaker import Share
from agent.profilers.locks import columns_of_waits
from agent.profilers.tcp_connects import rows_of_connects
from agent.profilers.tcp_rows import TCP_KEY, TCP_SUMS, rows_of_endpoints
from agent.profilers.wait_classes import WaitClass
from agent.records.event_drain import EventColumn
from server.store.known_kinds import KNOWN, in_order
from server.store.protocol import ColumnInfo
from server.store.push import ValueMerge
from tests.support.event_batches import KINDS as SENT

WHOLE = Share(1, 1)


def sent(columns: tuple[EventColumn, ...]) -> list[ColumnInfo]:
    return [ColumnInfo(column.name, column.unit, ValueMerge(int(column.merge))) for column in columns]


def test_every_kind_of_the_agent_is_known() -> None:
    assert set(KNOWN) == set(AGENT_KINDS)
    assert [field.name for field in fields(ColumnInfo)] == ["name", "unit", "merge"]


def test_columns_are_those_that_profilers_make() -> None:
    lock_values = np.zeros(1, [("count", "<u8"), ("ns", "<u8"), ("max_ns", "<u8"), ("buckets", "<u8", 32)])
    key, sums = np.zeros(1, TCP_KEY), np.zeros(1, TCP_SUMS)
    sums["rtts"] = sums["connects"] = 1
    assert sent(columns_of_waits(lock_values, WHOLE)) == list(KNOWN["lock"]) == list(KNOWN["lock_hold"])
    assert sent(rows_of_endpoints([(key, sums)]).columns) == list(KNOWN["tcp"])
    assert sent(rows_of_connects([]).columns) == list(KNOWN["tcp_stack"])
    assert {f"{one.name.lower()}_ns" for one in WaitClass} < {column.name for column in KNOWN["time"]}


@pytest.mark.parametrize("kind", sorted(SENT))
def test_columns_are_those_of_the_design(kind: str) -> None:
    for name, unit, merge in SENT[kind]:
        assert ColumnInfo(name, unit, ValueMerge(int(merge))) in KNOWN[kind]


def test_known_columns_stand_first_and_as_they_are_known() -> None:
    junk = ColumnInfo("junk", "count", ValueMerge.SUM)
    spoilt = (junk, ColumnInfo("ns", "bytes", ValueMerge.MAX), ColumnInfo("samples", "", ValueMerge.SUM))
    assert in_order("cpu", spoilt) == (*KNOWN["cpu"][:2], junk)
    assert in_order("weather", spoilt) == spoilt
