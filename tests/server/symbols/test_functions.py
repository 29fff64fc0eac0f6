# SPDX-License-Identifier: Apache-2.0
"""Numbers of functions: stable, growing, frozen when handed out."""

from server.profile.names import CodeKind
from server.symbols.functions import MOST_BUILDS, UNNAMED, FunctionNumbers


def test_a_function_is_its_name_and_its_binary() -> None:
    numbers = FunctionNumbers()
    main = numbers.number("main", "app", CodeKind.NATIVE)
    assert numbers.number("main", "other", CodeKind.NATIVE) != main
    assert numbers.number("main", "app", CodeKind.CPP, raw_name="_Z4mainv") == main
    table = numbers.freeze()
    assert (table.names[main], table.raw_names[main], table.binaries[main], table.codes[main]) == ("main", "main", "app", CodeKind.NATIVE)


def test_a_function_has_the_builds_it_was_met_in_the_latest_last() -> None:
    numbers = FunctionNumbers()
    main, other = numbers.number("main", "app", CodeKind.NATIVE), numbers.number("f", "app", CodeKind.NATIVE)
    before = numbers.freeze()
    for build in ("aa", "", "bb", "aa"):
        numbers.met_in(main, build)
    after = numbers.freeze()
    assert (before.builds[main], after.builds[main], after.builds[other]) == ((), ("aa", "bb"), ())
    for build in range(2 * MOST_BUILDS):
        numbers.met_in(other, f"{build:02x}")
    assert numbers.freeze().builds[other] == tuple(f"{build:02x}" for build in range(MOST_BUILDS, 2 * MOST_BUILDS))


def test_row_0_is_the_unknown() -> None:
    table = FunctionNumbers().freeze()
    assert (table.names, table.is_named.tolist(), table.codes.tolist()) == (["[unknown]"], [False], [CodeKind.UNKNOWN])
    assert UNNAMED == 0


def test_what_was_handed_out_does_not_grow() -> None:
    numbers = FunctionNumbers()
    before = numbers.freeze()
    assert numbers.freeze() is before
    numbers.number("f", "", CodeKind.NATIVE)
    after = numbers.freeze()
    assert (len(before), len(after)) == (1, 2)
    columns = (after.names, after.raw_names, after.binaries, after.codes, after.is_named, after.files, after.lines)
    assert {len(column) for column in columns} == {2}
