# SPDX-License-Identifier: Apache-2.0
"""Reads /proc/kallsyms: lines "ADDRESS TYPE NAME", those of modules, BPF programs and trampolines with "\\t[OWNER]" behind.

The image's own symbols (over 100,000) are not split into lines to find where code lies: only its three marks are searched for. The rest
stands behind them, owner by owner.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TEXT_TYPES = b"tTwW"
_OWNED = re.compile(rb"^([0-9a-f]{1,16}) (.) ([^\t\n]+)\t\[([^\]\n]+)\]$", re.MULTILINE)
_LINE = re.compile(rb"^([0-9a-f]{1,16}) ([tTwW]) ([^\t\n]+)(?:\t\[([^\]\n]+)\])?$", re.MULTILINE)
_NOT_ZERO = re.compile(rb"^0*[1-9a-f]", re.MULTILINE)
_PIECE_BYTES = 1 << 20
_MAX_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Symbol:
    """A symbol that does not belong to the image."""

    addr: int
    kind: bytes
    """One letter, as nm(1)."""
    name: bytes
    owner: bytes
    """A module, or "bpf", "__builtin__ftrace" and the like."""

    @property
    def is_text(self) -> bool:
        """Whether it names code."""
        return self.kind in TEXT_TYPES


@dataclass(frozen=True, slots=True)
class Kallsyms:
    """One reading."""

    raw: bytes
    is_hidden: bool
    """All addresses are zero (kptr_restrict), or there are none."""

    def image(self) -> tuple[int, int] | None:
        """From _text (else _stext) to _etext; None when either is missing."""
        start, end = self._addr(b"_text") or self._addr(b"_stext"), self._addr(b"_etext")
        return (start, end) if start and end and start < end else None

    def owned(self) -> list[Symbol]:
        """Symbols outside the image, in the order of the file."""
        first = self.raw.find(b"\t[")
        if first < 0:
            return []
        begin = self.raw.rfind(b"\n", 0, first) + 1
        return [Symbol(int(addr, 16), kind, name, owner) for addr, kind, name, owner in _OWNED.findall(self.raw, begin)]

    def text_symbols(self, owner: bytes, start: int, end: int) -> list[tuple[int, bytes]]:
        """(offset from `start`, b"TYPE NAME") of code of `owner` (b"" for the image) in [start, end), ascending, aliases included."""
        found: list[tuple[int, bytes]] = []
        for piece in self._pieces():
            for addr_hex, kind, name, line_owner in _LINE.findall(piece):
                if line_owner == owner and start <= (addr := int(addr_hex, 16)) < end:
                    found.append((addr - start, kind + b" " + name))
        found.sort()
        return found

    def _addr(self, name: bytes) -> int:
        at = self.raw.find(b" " + name + b"\n")
        line = self.raw[self.raw.rfind(b"\n", 0, at) + 1 : at] if at >= 0 else b""
        try:
            return int(line.split(b" ", 1)[0], 16)
        except ValueError:
            return 0

    def _pieces(self) -> Iterator[bytes]:
        at = 0
        while at < len(self.raw):
            end = self.raw.find(b"\n", at + _PIECE_BYTES)
            end = len(self.raw) if end < 0 else end + 1
            yield self.raw[at:end]
            at = end


def read_kallsyms(path: Path) -> Kallsyms:
    """Read the whole file; unreadable is the same as hidden."""
    try:
        with path.open("rb") as file:
            raw = file.read(_MAX_BYTES)
    except OSError:
        raw = b""
    return Kallsyms(raw, _NOT_ZERO.search(raw) is None)
