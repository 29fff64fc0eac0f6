# SPDX-License-Identifier: Apache-2.0
"""The names of a tree: one row per (shown name, base name of the binary, sort of name), numbered as they come.

Rows are only ever appended, so a number stays good while trees are extended. Row 0 is the root's and has no name.
"""

import hashlib
from collections.abc import Sequence
from enum import IntEnum, IntFlag

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import marks_pb2
from server.profile.calltree import Indices
from server.profile.names import CodeKind, FunctionTable


class PathFlag(IntFlag):
    """What a stack with such a frame in it lacks; the flags of a stack are those of all its frames."""

    UNNAMED = 1
    """A frame without a name ("[unknown] module+0x...")."""
    TRUNCATED = 2
    """Its outermost frames were cut off."""
    STACK_LOST = 4
    """Its frames could not be taken or had no room."""
    UNKNOWN = 8
    """A frame whose place could not be had: process gone, no mapping, nothing behind the address."""
    UNWIND_STOPPED = 16
    """Its outermost frames were not found."""
    KERNEL_HIDDEN = 32
    """Kernel frames that the kernel did not tell the addresses of."""


BROKEN = PathFlag.TRUNCATED | PathFlag.STACK_LOST | PathFlag.UNKNOWN | PathFlag.UNWIND_STOPPED
"""A stack with any of these is not whole."""

_LOST = PathFlag.STACK_LOST
_MARK_FLAGS: dict[int, PathFlag] = {
    marks_pb2.MARK_TRUNCATED: PathFlag.TRUNCATED,
    marks_pb2.MARK_EXITED: PathFlag.UNKNOWN,
    marks_pb2.MARK_EXEC_RACE: PathFlag.UNKNOWN,
    marks_pb2.MARK_STACK_LOST_ENOMEM: _LOST,
    marks_pb2.MARK_STACK_LOST_EEXIST: _LOST,
    marks_pb2.MARK_STACK_LOST_EFAULT: _LOST,
    marks_pb2.MARK_STACK_LOST_MAP_FULL: _LOST,
    marks_pb2.MARK_STACK_LOST_OTHER: _LOST,
    marks_pb2.MARK_NO_STACK: PathFlag.UNKNOWN,
    marks_pb2.MARK_NO_MAPPING: PathFlag.UNKNOWN,
    marks_pb2.MARK_ANONYMOUS: PathFlag.UNKNOWN,
    marks_pb2.MARK_UNREADABLE_FILE: PathFlag.UNKNOWN,
    **dict.fromkeys(range(marks_pb2.MARK_UNWIND_STOPPED_NO_MAPPING, marks_pb2.MARK_UNWIND_STOPPED_NO_TABLE + 1), PathFlag.UNWIND_STOPPED),
    marks_pb2.MARK_JIT: PathFlag.UNNAMED,
    marks_pb2.MARK_KERNEL_HIDDEN: PathFlag.UNNAMED | PathFlag.KERNEL_HIDDEN,
}


def mark_flags(marks: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint8]:
    """Give the flags that each Mark lays on its stack; numbers that are no Mark of ours count as an unknown place."""
    table = np.full(max(_MARK_FLAGS) + 2, int(PathFlag.UNKNOWN), np.uint8)
    table[list(_MARK_FLAGS)] = [int(flag) for flag in _MARK_FLAGS.values()]
    table[marks_pb2.MARK_VSYSCALL] = 0
    flags: npt.NDArray[np.uint8] = table[np.minimum(marks, np.uint64(table.size - 1)).astype(np.intp)]
    return flags


class NameSort(IntEnum):
    """What bears the name: a function called "[truncated]" and a thread of that name are not the mark."""

    FUNCTION = 0
    MARK = 1
    LABEL = 2
    """A thread, a service: a level of the tree that is no frame."""


class NameTable:
    """Columns of equal length, by number of the name. Not thread safe while `intern` or `flag` runs."""

    def __init__(self) -> None:
        self.names: list[str] = [""]
        self.binaries: list[str] = [""]
        self.files: list[str] = [""]
        self.lines: list[int] = [0]
        self.codes: list[int] = [int(CodeKind.MARK)]
        self.flags: list[int] = [0]
        self.hashes: list[int] = [0]
        self.sorts: list[NameSort] = [NameSort.LABEL]
        self.aliases: dict[int, tuple[str, ...]] = {}
        """Other names of a function's code, by which it is found as well."""
        self.builds: dict[int, tuple[str, ...]] = {}
        """Build ids of the binaries a function was met in, as far as they are known."""
        self._numbers: dict[tuple[str, str, NameSort], int] = {}
        self._ranks: Indices = np.zeros(0, np.intp)

    def __len__(self) -> int:
        return len(self.names)

    def frozen(self) -> "NameTable":
        """Give the table as it is now, for readers while this one goes on growing; numbers agree. 50,000 names: 2 ms."""
        copy = NameTable()
        for name in ("names", "binaries", "files", "lines", "codes", "flags", "hashes", "sorts", "aliases", "builds"):
            setattr(copy, name, getattr(self, name).copy())
        copy._ranks = self._ranks
        return copy

    def intern(self, functions: FunctionTable) -> Indices:
        """Give the number of each function, new or not. The first file and line seen for a name are kept."""
        codes, lines, is_named = functions.codes.tolist(), functions.lines.tolist(), functions.is_named.tolist()
        numbers = [
            self._intern((name, binary, NameSort(code == CodeKind.MARK)), file, line, code)
            for name, binary, file, line, code in zip(functions.names, functions.binaries, functions.files, lines, codes, strict=True)
        ]
        for number, named in zip(numbers, is_named, strict=True):
            if not named:
                self.flags[number] |= PathFlag.UNNAMED
        self.aliases.update((number, some) for number, some in zip(numbers, functions.aliases, strict=False) if some)
        self.builds.update((number, some) for number, some in zip(numbers, functions.builds, strict=False) if some)
        return np.array(numbers, np.intp)

    def label(self, name: str) -> int:
        """Give the number of a name that is no function: a thread, or a group."""
        return self._intern((name, "", NameSort.LABEL), "", 0, int(CodeKind.UNKNOWN))

    def mark(self, text: str) -> int:
        """Give the number of a mark that stands between frames."""
        return self._intern((text, "", NameSort.MARK), "", 0, int(CodeKind.MARK))

    def adopt(self, other: "NameTable", numbers: Sequence[int]) -> list[int]:
        """Take over rows of another table; gives their numbers here, in order."""
        return [self.adopt_as(other, number, other.names[number]) for number in numbers]

    def adopt_as(self, other: "NameTable", number: int, name: str) -> int:
        """Take over a row of another table by another name; rows that become one have the file and line of the first."""
        key = (name, other.binaries[number], other.sorts[number])
        mine = self._intern(key, other.files[number], other.lines[number], other.codes[number]) if number else 0
        self.flags[mine] |= other.flags[number]
        if number in other.aliases:
            self.aliases[mine] = other.aliases[number]
        if number in other.builds:
            self.builds[mine] = tuple(dict.fromkeys((*self.builds.get(mine, ()), *other.builds[number])))
        return mine

    def flag(self, numbers: Indices, flags: npt.NDArray[np.uint8]) -> None:
        """Lay flags on names (those of marks, by the frames that carry them)."""
        for number, bits in {(int(n), int(f)) for n, f in zip(numbers.tolist(), flags.tolist(), strict=True)}:
            self.flags[number] |= bits

    def ranks(self) -> Indices:
        """Give the place of each name in the order of (name, binary): the order of siblings."""
        if self._ranks.size != len(self):
            order = sorted(range(len(self)), key=lambda n: (self.names[n], self.binaries[n], self.sorts[n]))
            ranks = np.empty(len(order), np.intp)
            ranks[order] = np.arange(len(order))
            self._ranks = ranks
        return self._ranks

    def _intern(self, key: tuple[str, str, NameSort], file: str, line: int, code: int) -> int:
        number = self._numbers.get(key)
        if number is not None:
            return number
        number = self._numbers[key] = len(self.names)
        name, binary, sort = key
        text = f"{name}\0{binary}\0{int(sort)}".encode("utf-8", "surrogatepass")
        self.names.append(name)
        self.binaries.append(binary)
        self.files.append(file)
        self.lines.append(line)
        self.codes.append(code)
        self.sorts.append(sort)
        self.flags.append(0)
        self.hashes.append(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little"))
        return number
