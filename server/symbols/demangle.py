# SPDX-License-Identifier: Apache-2.0
"""Turns the names that binaries hold into the names that people read.

One library does all of it (`multi-demangle`), told which language a name is in: left to guess, it takes
`_ZN12_GLOBAL__N_113single_threadE` for Rust. Where its output differs from c++filt's in ways that people would trip over, the
text is mended here. Compiler suffixes (`.cold`, `.isra.0`) and symbol versions (`@@GLIBC_2.2.5`) are cut from what is shown; the
raw name is kept beside it. Go's names are left as they are.
"""

import hashlib
import re
from dataclasses import dataclass

import multi_demangle

from server.profile.names import CodeKind

MAX_MANGLED_CHARS = 8192
"""Longer names are shown as they are: time and memory of demangling stay bounded."""
MAX_SHOWN_BYTES = 4096

_SUFFIXES = re.compile(
    r"(?<=.)(?:\.(?:cold|localalias|(?:cold|part|isra|constprop|lto_priv|localalias|clone|llvm|__uniq)\.\d+))+$", re.DOTALL
)
_VERSION = re.compile(r"(?<=.)@@?[A-Za-z][\w.]*$")
_PLT = "@plt"
_RUST_LEGACY = re.compile(r"_ZN.*17h[0-9a-f]{16}E(?:[.@].*)?$", re.DOTALL)

_SWIFT = re.compile(r"_?\$[sS]\d*\w")
_D = re.compile(r"_D\d+[A-Za-z_]")

_LITERAL_OPERATOR = re.compile(r'\boperator(\w+)::operator ""')
_NUMBER = re.compile(r"\((unsigned int|unsigned long|long|unsigned long long|long long)\)(-?\d+)\b(?!\()")
_NUMBER_SUFFIX = {"unsigned int": "u", "unsigned long": "ul", "long": "l", "unsigned long long": "ull", "long long": "ll"}
_THUNK = re.compile(r"^\{virtual override thunk\(\{(v?)[^}]*\}, (\{[^}]*\}, )?(.*)\)\}$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Shown:
    """A name as people read it, and what kind of code it says it is."""

    name: str
    code: CodeKind


def shown_names(raw_names: list[str], is_go: bool = False) -> list[Shown]:
    """What to show for the symbols of a binary, in the same order. `is_go` tells that Go's compiler made the binary."""
    cores = [_without_decoration(raw, is_go) for raw in raw_names]
    codes = [_code(core, is_go) for core in cores]
    names = list(cores)
    languages = [_language(core, code) for core, code in zip(cores, codes, strict=True)]
    for language in ("cpp", "rust", "swift", "d"):
        places = [
            i for i, (core, own) in enumerate(zip(cores, languages, strict=True)) if own == language and len(core) <= MAX_MANGLED_CHARS
        ]
        for place, name in zip(places, multi_demangle.demangle_symbols([cores[i] for i in places], language=language), strict=True):
            names[place] = _mended(name) if language == "cpp" else name
    stubs = [_PLT if _is_stub(raw) else "" for raw in raw_names]
    return [Shown(bounded(name) + stub, code) for name, stub, code in zip(names, stubs, codes, strict=True)]


def bounded(name: str) -> str:
    """The name cut to 4 KiB of UTF-8; a cut one ends in a hash of the whole, so that different names stay different."""
    if len(name) * 4 <= MAX_SHOWN_BYTES:  # UTF-8 takes at most four bytes a character.
        return name
    data = name.encode("utf-8", "surrogatepass")
    if len(data) <= MAX_SHOWN_BYTES:
        return name
    mark = "…#" + hashlib.blake2b(data, digest_size=4).hexdigest()
    return data[: MAX_SHOWN_BYTES - len(mark.encode())].decode("utf-8", "ignore") + mark


def _is_stub(raw: str) -> bool:
    return raw.endswith(_PLT) and len(raw) > len(_PLT)


def _without_decoration(raw: str, is_go: bool) -> str:
    core = raw.removesuffix(_PLT) if _is_stub(raw) else raw
    if "@" in core:
        core = _VERSION.sub("", core)
    if "." in core and (not is_go or core.startswith("_Z")):
        core = _SUFFIXES.sub("", core)
    return core


def _code(core: str, is_go: bool) -> CodeKind:
    if core.startswith("_Z"):
        return CodeKind.RUST if _RUST_LEGACY.match(core) else CodeKind.CPP
    if core.startswith("_R") and core[2:3] in ("N", "I", "M", "X", "Y", "C", "B"):
        return CodeKind.RUST
    return CodeKind.GO if is_go and "." in core else CodeKind.NATIVE


def _language(core: str, code: CodeKind) -> str:
    """How the library calls what the name is in; "" for plain names."""
    if code in (CodeKind.CPP, CodeKind.RUST):
        return "cpp" if code == CodeKind.CPP else "rust"
    return "swift" if _SWIFT.match(core) else "d" if _D.match(core) else ""


def _mended(name: str) -> str:
    thunk = _THUNK.match(name)
    if thunk:
        kind = "covariant return" if thunk[2] else "virtual" if thunk[1] else "non-virtual"
        name = f"{kind} thunk to {thunk[3]}"
    if 'operator ""' in name:
        name = _LITERAL_OPERATOR.sub(r'operator"" \1', name)
    return _NUMBER.sub(lambda found: found[2] + _NUMBER_SUFFIX[found[1]], name)
