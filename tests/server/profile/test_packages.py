# SPDX-License-Identifier: Apache-2.0
"""What frames belong to, and graphs of it."""

from dataclasses import replace

import pytest

from server.profile.names import CodeKind
from server.profile.nametable import NameTable
from server.profile.packages import Unit, by_unit, package_of, without_type_arguments
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


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("main.foo[go.shape.int64]", "main.foo[...]"),
        ("example.com/pkg.(*Cache[go.shape.string]).Get", "example.com/pkg.(*Cache[...]).Get"),
        ("pkg.(*Cache[go.shape.string]).Map[go.shape.[]uint8].func1", "pkg.(*Cache[...]).Map[...].func1"),
        ("pkg.Sum[go.shape.struct { a [4]int; b map[string][]int }]", "pkg.Sum[...]"),
        ("net/http.(*conn).serve", "net/http.(*conn).serve"),
        ("pkg.Cut[go.shape.struct { a [4]i", "pkg.Cut[go.shape.struct { a [4]i"),
        ("pkg.Odd]f[int]", "pkg.Odd]f[int]"),
    ],
)
def test_type_arguments_of_go_are_left_out(name: str, shown: str) -> None:
    assert without_type_arguments(name) == shown


def test_generics_merge_instances_of_go_and_nothing_else() -> None:
    table = NameTable()
    instances = ["foo[go.shape.int64]", "foo[go.shape.string]"]
    go = table.intern(replace(functions(instances, [CodeKind.GO] * 2), builds=[("aa",), ("bb",)]))
    rust = table.intern(functions(["<[u64; 3] as arr::T>::go", "<[u8; 3] as arr::T>::go"], [CodeKind.RUST] * 2))
    mark = table.mark("[exited]")
    apart = by_unit(table, Unit.FUNCTION)
    assert len(set(apart.names[go].tolist())) == 2
    merged = by_unit(table, Unit.GENERICS)
    shown = [merged.table.names[n] for n in merged.names[[*go, *rust, mark]].tolist()]
    assert shown == ["foo[...]", "foo[...]", "<[u64; 3] as arr::T>::go", "<[u8; 3] as arr::T>::go", "[exited]"]
    assert (merged.table.builds[int(merged.names[go[0]])], merged.is_collapsed) == (("aa", "bb"), False)


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
