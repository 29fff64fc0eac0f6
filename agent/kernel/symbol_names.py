# SPDX-License-Identifier: Apache-2.0
"""Names of kernel addresses, from /proc/kallsyms, found in a child: the 100,000 names it sorts leave with it.

python -m agent.kernel.symbol_names reads addresses (u64, little endian) and writes a line for each: NAME, or nothing. A first line says
where data with names lies, START END in hexadecimal, 0 0 when there is none; a second one, in the same form, where the code lies that
calls the programs of a tracepoint when there are several.
"""

import itertools
import logging
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.kernel.kallsyms import read_kallsyms

log = logging.getLogger(__name__)

_TIMEOUT_S = 5.0
"""It takes some tenths of a second, and the end of a window waits for it."""
START_TIMEOUT_S = 30.0
"""What a start may wait for it, on a host that is overloaded."""
_LINE = re.compile(rb"^([0-9a-f]{1,16}) (.) ([^\t\n]+)", re.MULTILINE)
_TRACING = b"__traceiter_"
_DATA_TYPES = b"bBdDgGrRsSvV"
_FARTHEST_BYTES = 1 << 20
"""No function is that long: an address farther behind a symbol is in none."""


@dataclass(frozen=True, slots=True)
class SymbolNames:
    """What the child said."""

    names: tuple[bytes, ...]
    """One for each address asked for: the symbol it lies in, with +0x... behind for data that it does not begin; empty for unknown."""
    data_start: int
    data_end: int
    """Where data with names lies; both 0 when the kernel keeps no names of data (CONFIG_KALLSYMS_ALL), or hides addresses."""
    tracing: tuple[tuple[int, int], ...] = ()
    """Start and end of each function __traceiter_*, ascending: between a tracepoint and its programs, when it has more than one."""
    is_answer: bool = True
    """False when the child did not answer in time: another time it may."""


def symbol_names(addresses: Sequence[int], timeout_s: float | None = None) -> SymbolNames:
    """Names of `addresses`, and where named data lies. What cannot be had is unknown: this never raises."""
    unknown = SymbolNames((b"",) * len(addresses), 0, 0, is_answer=False)
    command = [sys.executable, "-P", "-m", "agent.kernel.symbol_names"]
    asked = np.array(addresses, "<u8").tobytes()
    try:
        answer = subprocess.run(command, input=asked, capture_output=True, timeout=timeout_s or _TIMEOUT_S, check=True).stdout
        head, traced, *names = answer.split(b"\n")
        start, end = (int(word, 16) for word in head.split())
        places = [int(word, 16) for word in traced.split()]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        log.warning("kernel names unknown reason=%s", error)  # Locks go without the name of who asked for them.
        return unknown
    if len(names) < len(addresses):
        return unknown
    return SymbolNames(tuple(names[: len(addresses)]), start, end, tuple(zip(places[::2], places[1::2], strict=False)))


def names_in(raw: bytes, addresses: npt.NDArray[np.uint64]) -> SymbolNames:
    """The child's work, on the text of kallsyms."""
    found = [(int(addr, 16), kind, name) for addr, kind, name in _LINE.findall(raw)]
    found = sorted(symbol for symbol in found if symbol[0])
    starts = np.array([symbol[0] for symbol in found], np.uint64)
    data = [symbol[0] for symbol in found if symbol[1] in _DATA_TYPES]
    names = tuple(_name(found, starts, int(address)) for address in addresses)
    return SymbolNames(names, min(data, default=0), max(data, default=-1) + 1, tuple(_tracing(found)))


def _tracing(found: Sequence[tuple[int, bytes, bytes]]) -> Iterator[tuple[int, int]]:
    for (start, _kind, name), (end, _, _) in itertools.pairwise(found):
        if name.startswith(_TRACING) and start < end:
            yield start, end


def _name(found: Sequence[tuple[int, bytes, bytes]], starts: npt.NDArray[np.uint64], address: int) -> bytes:
    at = int(np.searchsorted(starts, np.uint64(address), side="right")) - 1
    if at < 0 or address - found[at][0] >= _FARTHEST_BYTES:
        return b""
    first = int(np.searchsorted(starts, starts[at]))  # Of aliases always the same one.
    start, kind, name = found[first]
    is_inside_data = kind in _DATA_TYPES and address > start
    return name + b"+0x%x" % (address - start) if is_inside_data else name


def main() -> int:
    """The child's side."""
    addresses = np.frombuffer(sys.stdin.buffer.read(), "<u8")
    kallsyms = read_kallsyms(Path("/proc/kallsyms"))
    found = names_in(b"" if kallsyms.is_hidden else kallsyms.raw, addresses)
    places = b" ".join(b"%x %x" % place for place in found.tracing)
    head = b"%x %x\n%b\n" % (found.data_start, found.data_end, places)
    sys.stdout.buffer.write(head + b"".join(name + b"\n" for name in found.names))
    return 0


if __name__ == "__main__":
    sys.exit(main())
