# SPDX-License-Identifier: Apache-2.0
"""States in memory: whose turn it is, what is due, and that the bound holds."""

import pytest

from server.store.protocol import BinaryInfo
from server.symbols import ledger as module
from server.symbols.build_result import Quality
from server.symbols.identity import BinaryKey
from server.symbols.ledger import Ledger, NameState, SymbolState

ASKED, NAMED = SymbolState(NameState.WANTED, "asked"), SymbolState(NameState.NAMED, "", max(Quality))
INFO = BinaryInfo(1, 1, 1, b"\1" * 20, b"", b"/p", (), 7)


def key(number: int) -> BinaryKey:
    return BinaryKey(1, 1, bytes([number]) * 20, b"")


def test_all_that_are_wanted_have_their_turn() -> None:
    ledger = Ledger(lambda: 0.0)
    for number in range(1, 6):
        ledger.set(key(number), ASKED)
    ledger.set(key(3), NAMED)
    assert [ledger.wanted_some(2) for _ in range(2)] == [[key(1), key(2)], [key(4), key(5)]]
    ledger.set(key(1), ASKED)
    assert ledger.wanted_some(9) == [key(1), key(2), key(4), key(5)]


def test_first_of_two_threads_begins_and_due_comes_once_in_a_while() -> None:
    now = [0.0]
    ledger = Ledger(lambda: now[0])
    known, is_first = ledger.begin(key(1), INFO, ASKED)
    assert is_first and ledger.begin(key(1), INFO, NAMED) == (known, False)
    assert not ledger.is_due(key(1), 600.0) and not ledger.is_due(key(2), 600.0)
    now[0] = 600.0
    assert ledger.is_due(key(1), 600.0) and not ledger.is_due(key(1), 600.0)


def test_only_what_runs_and_could_be_better_is_poor() -> None:
    ledger = Ledger(lambda: 0.0)
    ledger.set(key(1), ASKED)
    ledger.begin(key(2), INFO, NAMED)
    ledger.begin(key(3), INFO, ASKED)
    assert [each for each, _ in ledger.poor(max(Quality))] == [key(3)]
    ledger.learn(key(1), INFO)
    assert [each for each, _ in ledger.poor(max(Quality))] == [key(3), key(1)]


def test_since_is_when_the_state_changed() -> None:
    now = [1.0]
    ledger = Ledger(lambda: now[0])
    ledger.set(key(1), ASKED)
    now[0] = 2.0
    ledger.set(key(1), ASKED)
    known = ledger.get(key(1))
    assert known is not None and known.since_s == 1.0
    ledger.set(key(1), NAMED)
    known = ledger.get(key(1))
    assert known is not None and (known.since_s, known.met_s) == (2.0, 1.0)


def test_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_BINARIES", 3)
    ledger = Ledger(lambda: 0.0)
    for number in range(1, 5):
        ledger.set(key(number), ASKED)
        ledger.get(key(1))
    assert ledger.find(lambda _: True) == [key(3), key(4), key(1)]
    assert key(2) not in ledger.wanted_some(9)
