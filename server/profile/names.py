# SPDX-License-Identifier: Apache-2.0
"""What frames are and what they are called: the nouns between the store, the symbols and the trees.

A frame is a row of FrameColumns (meaning: FrameTable in batch.proto). A function is a row of FunctionTable; many frames may
be one function. All columns of one noun have equal length. Nobody changes them after they were handed out.
"""

from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt


class CodeKind(IntEnum):
    """What kind of code a function is: gives its colour. The numbers are part of the page's API."""

    NATIVE = 0
    CPP = 1
    RUST = 2
    GO = 3
    JAVA = 4
    JAVASCRIPT = 5
    PYTHON = 6
    KERNEL = 7
    MARK = 8
    UNKNOWN = 9


@dataclass(frozen=True, slots=True)
class FrameColumns:
    """Frames as columns; row 0 is the empty frame, as in the dictionary of a service."""

    kinds: npt.NDArray[np.uint8]
    """PlaceKind."""
    refs: npt.NDArray[np.uint32]
    """Row id of the binary (FILE, KERNEL, MODULE) or index into strings (JIT, BPF)."""
    offsets: npt.NDArray[np.uint64]
    """Offset, tag or Mark, by kind."""
    is_return: npt.NDArray[np.uint8]
    """1 when the place is a return address."""

    def __len__(self) -> int:
        return int(self.kinds.size)


@dataclass(frozen=True, slots=True)
class FunctionTable:
    """Functions that frames belong to; told apart by (name, binary)."""

    names: list[str]
    """As shown: demangled, compiler suffixes cut."""
    raw_names: list[str]
    """As the binary has it (of the first such symbol seen); equal to the name when there is no other."""
    binaries: list[str]
    """Base name of the binary; "" for none."""
    codes: npt.NDArray[np.uint8]
    """CodeKind."""
    is_named: npt.NDArray[np.bool_]
    """False for "[unknown] module+0x..." only: marks and JIT names are names."""
    files: list[str]
    """Source file; "" when not known."""
    lines: npt.NDArray[np.int32]
    """Line in the file; 0 when not known."""
    aliases: list[tuple[str, ...]] = field(default_factory=list)
    """Other names of the same code, by which it is found too; shorter than the other columns where the last ones have none."""
    builds: list[tuple[str, ...]] = field(default_factory=list)
    """Build ids of the binaries it was met in, in hex, the latest last; shorter than the other columns as well."""

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True, slots=True)
class FrameParts:
    """What frames are made of: a function and the calls inlined into it. Columns by frame, then from the outermost function in."""

    bounds: npt.NDArray[np.int64]
    """Frame i has the parts bounds[i] up to bounds[i + 1], one at least."""
    function: npt.NDArray[np.int32]
    is_inlined: npt.NDArray[np.bool_]
    file: npt.NDArray[np.int32]
    """Row in files, where this part stands; 0 when not known."""
    line: npt.NDArray[np.int32]
    """0 when not known."""
    files: list[str]


@dataclass(frozen=True, slots=True)
class FrameNames:
    """The answer to "what are these frames called"."""

    function: npt.NDArray[np.int32]
    """Row in functions, one per frame: its outermost function."""
    functions: FunctionTable
    generation: int
    """Generation of the symbols it was made with: as long as it is the same, so is the answer."""
    parts: FrameParts | None = None
    """None when every frame is its function and nothing else."""

    def all_parts(self) -> FrameParts:
        """The parts, made up where there are none."""
        if self.parts is not None:
            return self.parts
        count = self.function.size
        none = np.zeros(count, np.int32)
        return FrameParts(np.arange(count + 1), self.function, np.zeros(count, np.bool_), none, none, [""])
