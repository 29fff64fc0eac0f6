# SPDX-License-Identifier: Apache-2.0
"""Names all frames of one service and remembers the answer: only new frames and changed tables cost anything.

Frames of one binary are resolved in one search; a name is decoded and demangled when the first frame hits it (binary_names.py).
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from server.profile.names import CodeKind, FrameColumns, FrameNames, FrameParts
from server.store.protocol import BinaryInfo
from server.symbols.binary_names import BinaryNames, Book
from server.symbols.demangle import bounded
from server.symbols.functions import UNNAMED
from server.symbols.jit import jit_code, shown_jit_name
from server.symbols.marks import mark_words
from server.symbols.resolve import resolve
from server.symbols.symtab import I64
from server.symbols.table import Table
from server.symbols.unfold import unfold

Tables = Callable[[BinaryInfo], Table | None]
Binaries = Callable[[Sequence[int]], Sequence[BinaryInfo]]
I32 = npt.NDArray[np.int32]

_PLACES = (pb.PLACE_KIND_FILE, pb.PLACE_KIND_KERNEL, pb.PLACE_KIND_MODULE)
BPF_BINARY = "bpf"


@dataclass(frozen=True, slots=True)
class _Columns:
    """Parts of some frames: by frame, from the outermost function in."""

    frames: I64
    functions: I32
    is_inlined: npt.NDArray[np.bool_]
    files: I32
    lines: I32

    def rows(self, chosen: slice | I64) -> "_Columns":
        """Some of them."""
        return _Columns(self.frames[chosen], self.functions[chosen], self.is_inlined[chosen], self.files[chosen], self.lines[chosen])


class NameBook:
    """Names of one service's frames. Safe for several threads, which wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._book = Book()
        self._of_binary: dict[int, BinaryNames] = {}
        self._parts = _joined([], 0)
        self._bounds: I64 = np.zeros(1, np.int64)
        self._answer = self._names_of(0, -1)
        self._frames = FrameColumns(np.zeros(0, np.uint8), np.zeros(0, np.uint32), np.zeros(0, np.uint64), np.zeros(0, np.uint8))

    def names(self, frames: FrameColumns, strings: Sequence[bytes], binaries: Binaries, tables: tuple[Tables, int]) -> FrameNames:
        """Name `frames`, of which earlier calls may have given a first part. `tables` comes with its generation."""
        find_table, generation = tables
        with self._lock:
            known = len(self._answer.function)
            start = known if self._answer.generation == generation and self._agrees_with(frames) else 0
            if start and start >= len(frames):
                return self._answer if start == len(frames) else self._names_of(len(frames), generation)
            fresh = self._name_rows(frames, start, strings, (binaries, find_table))
            counts = np.bincount(fresh.frames, minlength=len(frames) - start)
            before = int(self._bounds[start])
            kept = self._parts.rows(slice(before))
            self._parts = _joined([kept, fresh], start)
            self._bounds = np.concatenate([self._bounds[: start + 1], before + np.cumsum(counts)])
            self._answer = self._names_of(len(frames), generation)
            self._frames = frames
            return self._answer

    def _names_of(self, count: int, generation: int) -> FrameNames:
        end = int(self._bounds[count])
        parts = FrameParts(
            bounds=self._bounds[: count + 1],
            function=self._parts.functions[:end],
            is_inlined=self._parts.is_inlined[:end],
            file=self._parts.files[:end],
            line=self._parts.lines[:end],
            files=list(self._book.files),
        )
        return FrameNames(parts.function[parts.bounds[:-1]], self._book.functions.freeze(), generation, parts)

    def _agrees_with(self, frames: FrameColumns) -> bool:
        """A store that was thrown away and made anew starts its numbers again: its frames then differ from those known."""
        last = min(len(self._frames), len(frames)) - 1
        return last < 0 or _frame(frames, last) == _frame(self._frames, last)

    def _name_rows(self, frames: FrameColumns, start: int, strings: Sequence[bytes], sources: tuple[Binaries, Tables]) -> _Columns:
        """Parts of the frames from `start` on, which counts as frame 0."""
        kinds, refs, offsets = frames.kinds[start:], frames.refs[start:], frames.offsets[start:]
        functions = self._book.functions
        function = np.full(kinds.size, UNNAMED, np.int32)
        for rows, (_, offset) in _groups(kinds == pb.PLACE_KIND_MARK, np.zeros_like(refs), offsets):
            function[rows] = functions.number(mark_words(offset), "", CodeKind.MARK)
        for rows, (ref, _) in _groups(kinds == pb.PLACE_KIND_JIT, refs, np.zeros_like(offsets)):
            name = bounded(_text(strings, ref)) or "[jit]"
            function[rows] = functions.number(shown_jit_name(name), "", jit_code(name), raw_name=name)
        for rows, (ref, tag) in _groups(kinds == pb.PLACE_KIND_BPF, refs, offsets):
            name = "bpf_prog_" + (bounded(_text(strings, ref)) or f"{tag:016x}")
            function[rows] = functions.number(name, BPF_BINARY, CodeKind.KERNEL)
        placed = self._name_places(frames, start, sources)
        rows = np.flatnonzero(~np.isin(kinds, _PLACES))
        none = np.zeros(rows.size, np.int32)
        single = _Columns(rows, function[rows], np.zeros(rows.size, np.bool_), none, none)
        return _sorted(_joined([single, *placed], 0))

    def _name_places(self, frames: FrameColumns, start: int, sources: tuple[Binaries, Tables]) -> list[_Columns]:
        """Parts of the frames that are places in binaries, one result per binary."""
        kinds, refs, offsets, is_return = frames.kinds[start:], frames.refs[start:], frames.offsets[start:], frames.is_return[start:]
        groups = list(_groups(np.isin(kinds, _PLACES), refs, np.zeros_like(offsets)))
        binaries, find_table = sources
        infos = binaries([ref for _, (ref, _) in groups]) if groups else []
        found = []
        for (rows, _), binary in zip(groups, infos, strict=True):
            table = find_table(binary)
            placed = resolve(binary, table, offsets[rows], is_return[rows])
            names = self._of_binary.get(binary.row_id)
            if names is None or names.table is not table:
                names = self._of_binary[binary.row_id] = BinaryNames(self._book, binary, table)
            parts = unfold(placed, table)
            functions, files = names.functions(parts, placed.addresses), names.files(parts.files)
            found.append(_Columns(rows[parts.frames], functions, parts.is_inlined, files, parts.lines.astype(np.int32)))
        return found


def _joined(columns: Sequence[_Columns], shift: int) -> _Columns:
    """All of them one after another; frames of all but the first are counted `shift` further on."""
    return _Columns(
        np.concatenate([np.zeros(0, np.int64), *(c.frames + (shift if i else 0) for i, c in enumerate(columns))]),
        np.concatenate([np.zeros(0, np.int32), *(c.functions for c in columns)]),
        np.concatenate([np.zeros(0, np.bool_), *(c.is_inlined for c in columns)]),
        np.concatenate([np.zeros(0, np.int32), *(c.files for c in columns)]),
        np.concatenate([np.zeros(0, np.int32), *(c.lines for c in columns)]),
    )


def _sorted(columns: _Columns) -> _Columns:
    return columns.rows(np.argsort(columns.frames, kind="stable"))


def _frame(frames: FrameColumns, row: int) -> tuple[int, ...]:
    return tuple(int(column[row]) for column in (frames.kinds, frames.refs, frames.offsets, frames.is_return))


def _text(strings: Sequence[bytes], ref: int) -> str:
    return strings[ref].decode("utf-8", "backslashreplace") if ref < len(strings) else ""


def _groups(
    mask: npt.NDArray[np.bool_], refs: npt.NDArray[np.uint32], offsets: npt.NDArray[np.uint64]
) -> Iterator[tuple[I64, tuple[int, int]]]:
    """Rows under `mask` with one (ref, offset) together, and that pair."""
    rows = np.flatnonzero(mask)
    if not rows.size:
        return
    rows = rows[np.lexsort((offsets[rows], refs[rows]))]
    changes = (refs[rows[1:]] != refs[rows[:-1]]) | (offsets[rows[1:]] != offsets[rows[:-1]])
    bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), rows.size]
    for low, high in itertools.pairwise(bounds):
        yield rows[low:high], (int(refs[rows[low]]), int(offsets[rows[low]]))
