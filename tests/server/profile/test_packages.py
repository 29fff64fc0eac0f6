# SPDX-License-Identifier: Apache-2.0
"""What frames belong to, and graphs of it."""

import pytest

from server.profile.names import CodeKind
from server.profile.nametable import NameTable
from server.profile.packages import Unit, by_unit, package_of
from server.profile.reshape import DROPPED
from tests.server.profile.trees import functions


@pytest.mark.parametrize(
    ("name", "package"),
    [
        ("json::parse", "json"),
        ("<[u64; 3] as arr::T>::go", "[u64; 3] as arr"),
        ("net/http.(*liveSwitchReader).Read", "net/http"),
        ("java.lang.String.hashCode", "java"),
        ("parse", "app"),
        ("operator new(unsigned long)", "app"),
    ],
)
def test_package_is_what_stands_before_the_first_separator(name: str, package: str) -> None:
    assert package_of(name, "app") == package


def test_units_of_a_table() -> None:
    table = NameTable()
    numbers = table.intern(
        functions(["json::parse", "json::emit", "read", "db::get"], [CodeKind.CPP, CodeKind.CPP, CodeKind.KERNEL, CodeKind.CPP])
    )
    label = table.label("worker")
    packages = by_unit(table, Unit.PACKAGE)
    assert [packages.table.names[n] for n in packages.names[[*numbers, label]].tolist()] == ["json", "json", "kernel", "db", "worker"]
    binaries = by_unit(table, Unit.BINARY, with_kernel=False)
    assert binaries.names[numbers[2]] == DROPPED and binaries.table.names[binaries.names[numbers[0]]] == "app"
    same = by_unit(table, Unit.FUNCTION, with_kernel=False)
    assert same.names.tolist() == [0, 1, 2, DROPPED, 4, 5] and not same.is_collapsed
