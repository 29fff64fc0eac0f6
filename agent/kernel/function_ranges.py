# SPDX-License-Identifier: Apache-2.0
"""Where named functions of the kernel lie, from /proc/kallsyms, found in a child as in symbol_names.py.

python -m agent.kernel.function_ranges NAME... writes a line NAME START END, in hexadecimal, for each piece of code of these names: a name
may stand for a system call, and the compiler may have split a function (.isra.0, .part.0, .cold).
"""

import logging
import re
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import numpy as np

from agent.kernel.kallsyms import read_kallsyms

log = logging.getLogger(__name__)

Ranges = Mapping[bytes, tuple[tuple[int, int], ...]]
_TIMEOUT_S = 30.0
"""It takes some tenths of a second, once at the start."""
_LINE = re.compile(rb"^([0-9a-f]{1,16}) [tTwW] ([^\t\n]+)", re.MULTILINE)
_CALL_PREFIXES = (b"__x64_sys_", b"__ia32_sys_")
_LONGEST_BYTES = 1 << 20
"""No function is that long: the last one of a module ends somewhere before the next module."""


def function_ranges(names: Collection[str]) -> Ranges:
    """Start and end of the code of each name; one that is not found has none. Never raises: what cannot be had is not there."""
    if not names:
        return {}
    command = [sys.executable, "-P", "-m", "agent.kernel.function_ranges", *sorted(names)]
    try:
        answer = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        log.warning("kernel functions unknown reason=%s", error)
        answer = b""
    found: dict[bytes, list[tuple[int, int]]] = {name.encode(): [] for name in names}
    for line in answer.splitlines():
        name, start, end = line.split(b" ")
        found[name].append((int(start, 16), int(end, 16)))
    return {name: tuple(places) for name, places in found.items()}


def ranges_in(raw: bytes, names: Collection[bytes]) -> Iterator[tuple[bytes, int, int]]:
    """The child's work, on the text of kallsyms: name, start, end."""
    found = [(int(address, 16), symbol) for address, symbol in _LINE.findall(raw)]
    starts = np.unique(np.array([address for address, _ in found], np.uint64))
    for address, symbol in found:
        name = _plain(symbol)
        if address and name in names:
            after = int(np.searchsorted(starts, np.uint64(address), side="right"))
            end = int(starts[after]) if after < len(starts) else address + _LONGEST_BYTES
            yield name, address, min(end, address + _LONGEST_BYTES)


def _plain(symbol: bytes) -> bytes:
    name = symbol.partition(b".")[0]
    prefix = next((prefix for prefix in _CALL_PREFIXES if name.startswith(prefix)), b"")
    return name[len(prefix) :]


def main() -> int:
    """The child's side."""
    kallsyms = read_kallsyms(Path("/proc/kallsyms"))
    names = {name.encode() for name in sys.argv[1:]}
    for name, start, end in ranges_in(b"" if kallsyms.is_hidden else kallsyms.raw, names):
        sys.stdout.write(f"{name.decode()} {start:x} {end:x}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
