# SPDX-License-Identifier: Apache-2.0
"""Longer blocks: whatever is asked, the answer is the one of the minutes; late windows and blocks of older servers included."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.query.merge import key_weights
from server.store import cover
from server.store.protocol import RetireLimits, Selection
from server.store.sql_store import SqlStore
from tests.support.batches import START_UNIX_NS
from tests.support.pushes import MINUTE_NS, SECOND_NS, STACK, compact_all, leap, new_store, push_rows, timeline_total, totals

HOUR_NS = 3600 * SECOND_NS
DAY_NS = 24 * HOUR_NS
DAY_START = START_UNIX_NS // DAY_NS * DAY_NS
SPANS = [
    (DAY_START, DAY_START + DAY_NS),
    (DAY_START, DAY_START + 2 * DAY_NS),
    (DAY_START + 7 * MINUTE_NS, DAY_START + 26 * HOUR_NS + 13 * SECOND_NS),
    (DAY_START + 50 * MINUTE_NS, DAY_START + 3 * HOUR_NS),
    (DAY_START + HOUR_NS + 1, DAY_START + 5 * HOUR_NS - 1),
]


@pytest.fixture(scope="module")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A window every 17 minutes for 30 hours on two hosts, in blocks of all lengths: the file of a store."""
    directory = tmp_path_factory.mktemp("filled")
    store = new_store(directory)
    for number in range(106):
        at = DAY_START + number * 17 * MINUTE_NS + (number % 6) * 10 * SECOND_NS
        rows = [("web", "t", [f"app+{number % 9:#x}10", *STACK], 1 + number % 5), ("db", "t", STACK, 7)]
        push_rows(store, rows, number + 1, at, host=f"host-{number % 2}".encode())
    compact_all(store, DAY_START + 3 * DAY_NS)
    store.close()
    (file,) = directory.iterdir()
    return file


@pytest.fixture
def filled(filled_file: Path, tmp_path: Path) -> Iterator[SqlStore]:
    shutil.copy(filled_file, tmp_path)
    store = new_store(tmp_path)
    yield store
    store.close()


def lengths(store: SqlStore, where: str = "is_ready") -> list[int]:
    with store._engine.connect() as connection:
        return [row[0] for row in connection.exec_driver_sql(f"SELECT length_s FROM rollups WHERE {where} ORDER BY length_s")]


def answers(store: SqlStore) -> list[object]:
    """All that is asked of blocks, for each span: rows, and sums by slots that cut blocks and by those that do not."""
    found: list[object] = []
    for span in SPANS:
        found.append((totals(store, span=span), timeline_total(store, span=span)))
        for step_ns in (HOUR_NS, 25 * MINUTE_NS, DAY_NS):
            timeline = store.timeline(Selection("cpu", *span), step_ns)
            found.append((timeline.columns["samples"].tolist(), timeline.has_data.tolist(), timeline.series_ids.tolist()))
    return found


def answers_of_minutes(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    with monkeypatch.context() as patched:
        patched.setattr(cover, "MOST_RUNS", 3)
        patched.setattr(cover.Wanted, "is_in_one_slot", lambda _self, starts, _length: starts < 0)
        return answers(store)


def test_longer_blocks_answer_as_their_minutes_do(filled: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(lengths(filled)) == {600, 3600, 86_400} and not lengths(filled, "NOT is_ready")
    assert answers(filled) == answers_of_minutes(filled, monkeypatch)


def test_a_long_range_is_read_in_few_pieces(filled: SqlStore) -> None:
    assert len(list(filled.select(Selection("cpu", DAY_START, DAY_START + DAY_NS)))) == 2  # one a service
    hours = list(filled.select(Selection("cpu", DAY_START, DAY_START + DAY_NS, longest_ns=HOUR_NS)))
    assert len(hours) == 48 and max(piece.end_unix_ns - piece.start_unix_ns for piece in hours) <= HOUR_NS


def test_a_late_window_counts_at_once_and_in_every_longer_block(filled: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    before = totals(filled, span=SPANS[0])["web"]
    push_rows(filled, [("web", "t", STACK, 1009)], 200, DAY_START + 5 * HOUR_NS, host=b"host-0")
    assert totals(filled, span=SPANS[0])["web"] == before + 1009
    while lengths(filled, "NOT is_ready") == []:
        filled.compact(DAY_START + 3 * DAY_NS)
    assert lengths(filled, "NOT is_ready") == [600, 3600, 86_400]
    assert totals(filled, span=SPANS[0])["web"] == before + 1009
    compact_all(filled, DAY_START + 3 * DAY_NS)
    assert not lengths(filled, "NOT is_ready")
    assert answers(filled) == answers_of_minutes(filled, monkeypatch)
    assert totals(filled, span=SPANS[0])["web"] == before + 1009


def test_minutes_of_a_server_without_longer_blocks_are_found(filled: SqlStore, tmp_path_factory: pytest.TempPathFactory) -> None:
    expected = answers(filled)
    with filled._engine.begin() as connection:
        connection.exec_driver_sql("DELETE FROM rollups")
    url = filled._engine.url
    filled.close()
    again = SqlStore(url)
    assert answers(again) == expected
    compact_all(again, DAY_START + 3 * DAY_NS)
    assert set(lengths(again)) == {600, 3600, 86_400} and answers(again) == expected
    again.close()


def test_a_day_is_not_made_before_it_is_over(store: SqlStore) -> None:
    push_rows(store, [("web", "t", STACK, 7)], 1, DAY_START)
    compact_all(store, DAY_START + 2 * HOUR_NS)
    assert (lengths(store), lengths(store, "NOT is_ready")) == ([600, 3600], [86_400])


def test_what_is_retired_leaves_its_longer_blocks_too(filled: SqlStore) -> None:
    limits = RetireLimits(keep_s=12 * 3600)
    leap(filled, DAY_START + 30 * HOUR_NS)
    while not filled.retire(limits, DAY_START + 30 * HOUR_NS).is_done:
        pass
    span = (DAY_START, DAY_START + 2 * DAY_NS)
    assert totals(filled, span=span) == totals(filled, span=(DAY_START + 18 * HOUR_NS, span[1]))
    with filled._engine.connect() as connection:
        oldest = connection.exec_driver_sql("SELECT min(start_unix_ns) FROM rollups").scalar_one()
    assert oldest >= DAY_START + 18 * HOUR_NS


def test_what_ran_for_a_while_of_a_day_ran_for_that_while(store: SqlStore) -> None:
    """CPU time by second of one host must not fall when its hours become a block of a day with hosts that ran all day."""
    for number in range(24):
        push_rows(store, [("web", "t", STACK, 7)], number + 1, DAY_START + number * HOUR_NS, host=b"all-day")
    for number in range(3):
        push_rows(store, [("web", "t", STACK, 23)], number + 1, DAY_START + (18 + number) * HOUR_NS + 5 * MINUTE_NS, host=b"a-while")
    ids = {info.labels["host"]: info.series_id for info in store.series("cpu", 0, 2**62)}
    spans = []
    for _ in range(2):
        for hosts in (["a-while"], ["all-day"], ["a-while", "all-day"]):
            chosen = Selection("cpu", DAY_START, DAY_START + DAY_NS, frozenset(ids[host] for host in hosts), ("samples",))
            merged = key_weights(store, chosen, ("samples",))
            spans.append((merged.start_unix_ns - DAY_START, merged.end_unix_ns - DAY_START, merged.services["web"].totals["samples"]))
        compact_all(store, DAY_START + 2 * DAY_NS)
    window = 10 * SECOND_NS
    a_while = (18 * HOUR_NS + 5 * MINUTE_NS, 20 * HOUR_NS + 5 * MINUTE_NS + window, 69)
    assert lengths(store)[-1] == 86_400
    assert spans[:3] == [a_while, (0, 23 * HOUR_NS + window, 168), (0, 23 * HOUR_NS + window, 237)]
    assert spans[3:] == spans[:3]
