# SPDX-License-Identifier: Apache-2.0
"""Tells by a perf map's name which run time compiled the code. Names stay as they are."""

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
