# SPDX-License-Identifier: Apache-2.0
"""Names of the fleet: each is tested once, tables may grow, threads are no functions."""

import numpy as np

from server.profile.nametable import NameTable
from server.query.name_index import NameIndex
from tests.server.profile.trees import functions


def test_a_name_of_many_services_is_tested_once() -> None:
    index, tested = NameIndex(), list[str]()
    tables = [NameTable(), NameTable()]
    tables[0].intern(functions(["main", "parse"]))
    tables[1].intern(functions(["parse", "send"]))

    def test(name: str) -> bool:
        tested.append(name)
        return "s" in name

    assert [mask.tolist() for mask in index.matches(tables, test)] == [[False, False, True], [False, True, True]]
    assert sorted(tested) == ["main", "parse", "send"]
    tables[0].intern(functions(["gs"]))
    tables[0].label("thread-s")
    assert index.matches(tables[:1], test)[0].tolist() == [False, False, True, True, False]
    assert "send" not in tested[3:]  # only names of the tables that were asked about


def test_tables_that_are_gone_do_not_count() -> None:
    index = NameIndex()
    index.matches([NameTable()], lambda _: True)
    table = NameTable()
    table.intern(functions(["f"]))
    assert np.flatnonzero(index.matches([table], lambda name: name == "f")[0]).tolist() == [1]
