# SPDX-License-Identifier: Apache-2.0
"""Which run time a name of a perf map comes from."""

import pytest

from server.profile.names import CodeKind
from server.symbols.jit import jit_code, shown_jit_name


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


def test_a_hostile_name_comes_to_an_end() -> None:
    for name in ("a/" * 2000, "a." * 2000, "a" * 4000, "$" * 4000, "L" + "a/" * 2000, "a.b " * 1000, "x.js" * 1000, "[" * 4000):
        jit_code(name)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Lsun/net/spi/DefaultProxySelector$3;::run", "sun.net.spi.DefaultProxySelector$3.run"),
        ("java/util/HashMap.get(Ljava/lang/Object;)Ljava/lang/Object;", "java.util.HashMap.get(Object)"),
        ("app.Server.write([BIIZ)V", "app.Server.write(byte[], int, int, boolean)"),
        ("app.Main.main([[Ljava/lang/String;J)V", "app.Main.main(String[][], long)"),
        ("app.Server.<init>()V", "app.Server.<init>()"),
        ("Lambda$469/0x00007fb8a5acdd00.call", "Lambda$469/0x00007fb8a5acdd00.call"),
        ("int java.lang.String.hashCode()", "int java.lang.String.hashCode()"),
        ("py::fib:/srv/app.py", "py::fib:/srv/app.py"),
        ("LazyCompile:~value node:internal/console/constructor:314", "LazyCompile:~value node:internal/console/constructor:314"),
    ],
)
def test_jvm_descriptors_are_made_readable_and_nothing_else(name: str, shown: str) -> None:
    assert shown_jit_name(name) == shown


def test_hostile_names_come_to_an_end() -> None:
    for name in ("a." * 2000, "L" + "a/" * 2000, "a(" + "[" * 4000, "a.b(" + "Lx;" * 1300, "L" + "-" * 4000 + ";:"):
        assert shown_jit_name(name)
