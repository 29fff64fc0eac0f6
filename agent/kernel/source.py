# SPDX-License-Identifier: Apache-2.0
"""Expands the quoted includes of a BPF program into one text, with #line marks.

BCC rewrites map accesses only in the main text it compiles, so a helper in an included header would not load. The marks keep
the file and line of every message of the compiler.
"""

import re
from collections.abc import Callable, Sequence
from importlib import resources

from agent.errors import KernelError

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"\s*$')
_DEPTH_LIMIT = 8

ReadSource = Callable[[str], str]
"""Text of a file by its name as in the include."""


def packaged_source(name: str) -> str:
    """Text of a file of bpf/, wherever the package is installed."""
    if ".." in name.split("/"):
        raise KernelError(f"BPF source {name!r} lies outside of bpf/")
    place = resources.files("agent.bpf")
    for part in name.split("/"):
        place = place / part
    try:
        return place.read_text(encoding="utf-8")
    except OSError as error:
        raise KernelError(f"BPF source {name!r} is missing from the installation: install the package again") from error


def expand_includes(names: Sequence[str], read: ReadSource = packaged_source) -> str:
    """The texts of `names` one after another, with every quoted include replaced by that file's text, each file once."""
    included: set[str] = set()
    return "".join("".join(_expand(name, read, included, 0)) for name in names if name not in included)


def _expand(name: str, read: ReadSource, included: set[str], depth: int) -> list[str]:
    if depth > _DEPTH_LIMIT:
        raise KernelError(f"BPF source {name!r} is included more than {_DEPTH_LIMIT} deep")
    included.add(name)
    lines = [f'#line 1 "{name}"\n']
    for number, line in enumerate(read(name).splitlines(), start=1):
        found = _INCLUDE.match(line)
        if not found:
            lines.append(line + "\n")
            continue
        if found[1] not in included:
            lines += _expand(found[1], read, included, depth + 1)
        lines.append(f'#line {number + 1} "{name}"\n')
    return lines
