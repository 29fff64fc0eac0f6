# SPDX-License-Identifier: Apache-2.0
"""Which run time a name of a perf map comes from."""

import pytest

from server.profile.names import CodeKind
from server.symbols.jit import jit_code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("Lsun/net/spi/DefaultProxySelector$3;::run", CodeKind.JAVA),
        ("Lambda$469/0x00007fb8a5acdd00.call", CodeKind.JAVA),
        ("java/util/HashMap.putVal", CodeKind.JAVA),
        ("int java.lang.String.hashCode()", CodeKind.JAVA),
        ("java.lang.String.hashCode", CodeKind.JAVA),
        ("void App$Worker.run(java.lang.Object)", CodeKind.JAVA),
        ("Interpreter", CodeKind.JAVA),
        ("LazyCompile:~value node:internal/console/constructor:314", CodeKind.JAVASCRIPT),
        ("JS:*fib /srv/app.js:7:13", CodeKind.JAVASCRIPT),
        ("Builtin:ArgumentsAdaptorTrampoline", CodeKind.JAVASCRIPT),
        ("BytecodeHandler:LdaConstant", CodeKind.JAVASCRIPT),
        ("py::fib:/srv/app.py", CodeKind.PYTHON),
        ("py::Worker.run:/srv/java/util/x.py", CodeKind.PYTHON),
        ("main", CodeKind.NATIVE),
        ("", CodeKind.NATIVE),
        ("julia_fib_23", CodeKind.NATIVE),
    ],
)
def test_kind_of_code_by_name(name: str, code: CodeKind) -> None:
    assert jit_code(name) == code


def test_a_hostile_name_costs_no_time() -> None:
    for name in ("a/" * 2000, "a." * 2000, "a" * 4000, "$" * 4000, "L" + "a/" * 2000, "a.b " * 1000, "x.js" * 1000, "[" * 4000):
        jit_code(name)
