# SPDX-License-Identifier: Apache-2.0
"""What lacks a part of its stack is told of the rows it stands in, not of others on the host."""

from server.query.merge import key_weights
from server.query.quality import StackLosses
from server.query.stack_losses import counts_of, stack_losses
from server.store.protocol import Selection
from tests.server.query.fakes import NOW_NS, START_NS, FakeStore, Row

ROWS: list[Row] = [
    ("curl", "a", "t", ["[exited]"], 17),
    ("curl", "a", "t", ["[exited]", "__x64_sys_read_[k]"], 6),
    ("shop", "a", "t", ["main", "send"], 60),
    ("shop", "a", "t", ["[stack lost: map full]"], 2),
    ("shop", "a", "t", ["[truncated]", "f"], 7),
    ("shop", "a", "t", ["[unwind stopped: no row]", "g"], 11),
    ("shop", "a", "t", ["main", "[no mapping]"], 20),
]


def losses_of(*services: str) -> StackLosses:
    store = FakeStore()
    store.add(ROWS, START_NS)
    found = key_weights(store, Selection("cpu", START_NS, NOW_NS, None, ("samples",)), ("samples",)).services
    return stack_losses(counts_of(found[name].dictionary, found[name].columns["samples"]) for name in services)


def test_each_service_has_its_own() -> None:
    assert losses_of("curl") == StackLosses({"EXITED": 23}, 1.0)
    assert losses_of("shop") == StackLosses({"STACK_MAP_FULL": 2, "TRUNCATED": 7, "UNWIND_STOPPED": 11}, 0.02)


def test_of_both_together_they_add_up() -> None:
    assert losses_of("shop", "curl").by == {"STACK_MAP_FULL": 2, "TRUNCATED": 7, "EXITED": 23, "UNWIND_STOPPED": 11}


def test_nothing_has_no_losses() -> None:
    assert losses_of() == StackLosses()
