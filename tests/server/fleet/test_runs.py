# SPDX-License-Identifier: Apache-2.0
"""Runs of versions: cut where a version had gone, and each with the one it replaced."""

from server.fleet.runs import WINDOW_NS, Return, changes, runs_of
from server.store.protocol import SeriesInfo

MINUTE_NS = 60 * 10**9


def series(version: str, host: str, first: int, last: int) -> SeriesInfo:
    labels = {"service": "shop", "host": host, "version": version}
    return SeriesInfo(hash((version, host)) % 1000, "shop", "cpu", labels, first * MINUTE_NS, last * MINUTE_NS)


INFOS = [series("1", "a", 0, 90), series("1", "b", 0, 90), series("2", "a", 30, 60), series("2", "b", 40, 60)]
BACK = Return("shop", "1", 41 * MINUTE_NS, {"a": 61 * MINUTE_NS, "b": 62 * MINUTE_NS})


def test_a_rollback_is_a_change_of_its_own() -> None:
    runs = runs_of(INFOS, [BACK])
    assert [(run.version, run.first // MINUTE_NS, run.end // MINUTE_NS, run.is_return) for run in runs] == [
        ("1", 0, 41, False),
        ("2", 30, 60, False),
        ("1", 61, 90, True),
    ]
    assert [(run.version, before.version) for run, before in changes(runs)] == [("2", "1"), ("1", "2")]
    assert runs[2].first_by_host == {"a": 61 * MINUTE_NS, "b": 62 * MINUTE_NS}
    assert runs[0].last_by_host == {"a": 41 * MINUTE_NS - WINDOW_NS, "b": 41 * MINUTE_NS - WINDOW_NS}


def test_without_it_the_version_is_one_run() -> None:
    assert [run.version for run in runs_of(INFOS, [])] == ["1", "2"]


def test_one_that_fits_no_series_any_more_is_passed_over() -> None:
    late = Return("shop", "1", 200 * MINUTE_NS, {"a": 201 * MINUTE_NS})
    assert len(runs_of(INFOS, [late])) == 2
    assert len(runs_of(INFOS, [BACK, BACK])) == 3


def test_a_canary_that_is_taken_back_is_replaced_by_what_went_on_elsewhere() -> None:
    infos = [series("1", "a", 0, 90), series("1", "b", 0, 90), series("2", "a", 30, 60)]
    back = Return("shop", "1", 61 * MINUTE_NS, {"a": 61 * MINUTE_NS})
    found = changes(runs_of(infos, [back]))
    assert [(run.version, before.version) for run, before in found] == [("2", "1"), ("1", "2")]
    assert set(found[1][0].last_by_host) == {"a", "b"}
