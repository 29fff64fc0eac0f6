# SPDX-License-Identifier: Apache-2.0
"""Tells by a perf map's name which run time compiled the code, and makes JVM descriptors readable; other names stay as they are."""

import re

from server.profile.names import CodeKind

_PYTHON = "py::"
"""CPython 3.12 and later, `-X perf`: py::function:/path/file.py."""
_JAVASCRIPT = re.compile(
    r"(?:JS:|LazyCompile:|Function:|Script:|Eval:|RegExp:|Builtin:|BytecodeHandler:|Stub:|Handler:|InterpretedFunction:|Baseline: |Ion: )"
    r"|.*(?:\.[cm]?[jt]s|node:[\w/]+):\d+"
)
"""V8 (--perf-basic-prof) and SpiderMonkey."""
_JAVA = re.compile(
    r"L[\w/$.+]+;::"  # Lsun/net/spi/DefaultProxySelector$3;::run
    r"|(?:[\w$]+/)+[\w$/+0-9x]+\.[\w$<>]+"  # java/util/HashMap.get, Lambda$469/0x00007fb8a5acdd00.call
    r"|(?:[\w$]+\.){2,}[\w$<>]+(?:\(|$)"  # java.lang.String.hashCode()
    r"|(?:\w[\w.$\[\]]* )?(?:[\w$]+\.)+[\w$<>]+(?:::[\w$<>]+)?\("  # int java.lang.String.hashCode()
    r"|(?:Interpreter|call_stub|I2C/C2I adapters?|StubRoutines\b.*|vtable stub|itable stub)$"
)


def jit_code(name: str) -> CodeKind:
    """The kind of code that a name from a perf map stands for; NATIVE when it says nothing."""
    if name.startswith(_PYTHON):
        return CodeKind.PYTHON
    if _JAVASCRIPT.match(name):
        return CodeKind.JAVASCRIPT
    if _JAVA.match(name):
        return CodeKind.JAVA
    return CodeKind.NATIVE


_DESCRIPTOR = re.compile(r"L((?:[\w$.+-]+/)*[\w$.+-]+);::?(.+)", re.DOTALL)
"""Ljava/util/HashMap;::get, as some agents write perf maps."""
_SIGNATURE = re.compile(r"((?:[\w$+-]+[/.])*[\w$+<>-]+)\(((?:\[*(?:[ZBCSIJFD]|L[^;()]+;))*)\)(\[*(?:[ZBCSIJFDV]|L[^;()]+;))")
"""java.util.HashMap.get(Ljava/lang/Object;)Ljava/lang/Object;"""
_TYPE = re.compile(r"(\[*)(?:([ZBCSIJFDV])|L([^;()]+);)")
_PRIMITIVES = {"Z": "boolean", "B": "byte", "C": "char", "S": "short", "I": "int", "J": "long", "F": "float", "D": "double", "V": "void"}


def shown_jit_name(name: str) -> str:
    """A perf map's name as people read it: JVM descriptors become Java's own words, everything else stays.

    "Lsun/net/spi/DefaultProxySelector$3;::run" is sun.net.spi.DefaultProxySelector$3.run; parameter types follow the name,
    "get(Object)", and the result type is left out.
    """
    found = _DESCRIPTOR.match(name)
    if found:
        name = f"{found[1].replace('/', '.')}.{found[2]}"
    signature = _SIGNATURE.fullmatch(name)
    if signature is None:
        return name
    types = ", ".join(
        (_PRIMITIVES[kind] if kind else path.rpartition("/")[2]) + "[]" * len(arrays) for arrays, kind, path in _TYPE.findall(signature[2])
    )
    return f"{signature[1].replace('/', '.')}({types})"
