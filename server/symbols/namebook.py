# SPDX-License-Identifier: Apache-2.0
"""Names all frames of one service and remembers the answer: only new frames and changed tables cost anything.

Frames of one binary are resolved in one search; a symbol is decoded and demangled when the first frame hits it.
"""

import itertools
import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from server.profile.names import CodeKind, FrameColumns, FrameNames
from server.store.protocol import BinaryInfo
from server.symbols.demangle import bounded, shown_names
from server.symbols.functions import UNNAMED, FunctionNumbers
from server.symbols.identity import module_name
from server.symbols.jit import jit_code
from server.symbols.marks import mark_words
from server.symbols.resolve import resolve
from server.symbols.symtab import I64
from server.symbols.table import Table, Traits

Tables = Callable[[BinaryInfo], Table | None]
Binaries = Callable[[Sequence[int]], Sequence[BinaryInfo]]
I32 = npt.NDArray[np.int32]

_PLACES = (pb.PLACE_KIND_FILE, pb.PLACE_KIND_KERNEL, pb.PLACE_KIND_MODULE)
_KERNEL_KINDS = (pb.BINARY_KIND_KERNEL, pb.BINARY_KIND_MODULE)
BPF_BINARY = "bpf"


class NameBook:
    """Names of one service's frames. Safe for several threads, which wait for each other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._functions = FunctionNumbers()
        self._of_symbol: dict[int, tuple[Table, I32]] = {}
        self._answer = FrameNames(np.zeros(0, np.int32), self._functions.freeze(), -1)
        self._frames = FrameColumns(np.zeros(0, np.uint8), np.zeros(0, np.uint32), np.zeros(0, np.uint64), np.zeros(0, np.uint8))

    def names(self, frames: FrameColumns, strings: Sequence[bytes], binaries: Binaries, tables: tuple[Tables, int]) -> FrameNames:
        """Name `frames`, of which earlier calls may have given a first part. `tables` comes with its generation."""
        find_table, generation = tables
        with self._lock:
            known = self._answer.function
            start = known.size if self._answer.generation == generation and self._agrees_with(frames) else 0
            if start and start >= len(frames):
                whole = self._answer
                return whole if start == len(frames) else FrameNames(known[: len(frames)], whole.functions, generation)
            fresh = self._name_rows(frames, start, strings, (binaries, find_table))
            self._answer = FrameNames(np.concatenate([known[:start], fresh]), self._functions.freeze(), generation)
            self._frames = frames
            return self._answer

    def _agrees_with(self, frames: FrameColumns) -> bool:
        """A store that was thrown away and made anew starts its numbers again: its frames then differ from those known."""
        last = min(len(self._frames), len(frames)) - 1
        return last < 0 or _frame(frames, last) == _frame(self._frames, last)

    def _name_rows(self, frames: FrameColumns, start: int, strings: Sequence[bytes], sources: tuple[Binaries, Tables]) -> I32:
        kinds, refs, offsets = frames.kinds[start:], frames.refs[start:], frames.offsets[start:]
        is_return = frames.is_return[start:]
        function = np.full(kinds.size, UNNAMED, np.int32)
        for rows, (_, offset) in _groups(kinds == pb.PLACE_KIND_MARK, np.zeros_like(refs), offsets):
            function[rows] = self._functions.number(mark_words(offset), "", CodeKind.MARK)
        for rows, (ref, _) in _groups(kinds == pb.PLACE_KIND_JIT, refs, np.zeros_like(offsets)):
            name = bounded(_text(strings, ref)) or "[jit]"
            function[rows] = self._functions.number(name, "", jit_code(name))
        for rows, (ref, tag) in _groups(kinds == pb.PLACE_KIND_BPF, refs, offsets):
            name = "bpf_prog_" + (bounded(_text(strings, ref)) or f"{tag:016x}")
            function[rows] = self._functions.number(name, BPF_BINARY, CodeKind.KERNEL)
        places = list(_groups(np.isin(kinds, _PLACES), refs, np.zeros_like(offsets)))
        binaries, find_table = sources
        infos = binaries([ref for _, (ref, _) in places]) if places else []
        for (rows, _), binary in zip(places, infos, strict=True):
            table = find_table(binary)
            placed = resolve(binary, table, offsets[rows], is_return[rows])
            numbers = np.full(rows.size, UNNAMED, np.int32)
            is_hit = placed.symbols >= 0
            if table is not None:
                numbers[is_hit] = self._of_symbols(binary, table, placed.symbols[is_hit])
            module = module_name(binary.kind, binary.path)
            code = CodeKind.KERNEL if binary.kind in _KERNEL_KINDS else CodeKind.UNKNOWN
            numbers[~is_hit] = [
                self._functions.number(f"[unknown] {module}+{address:#x}", module, code, is_named=False)
                for address in placed.addresses[~is_hit].tolist()
            ]
            function[rows] = numbers
        return function

    def _of_symbols(self, binary: BinaryInfo, table: Table, symbols: I64) -> I32:
        known = self._of_symbol.get(binary.row_id)
        if known is None or known[0] is not table:
            known = self._of_symbol[binary.row_id] = (table, np.full(len(table), -1, np.int32))
        numbers = known[1]
        is_hit = np.zeros(len(table), np.bool_)
        is_hit[symbols] = True
        fresh = np.flatnonzero(is_hit & (numbers < 0))
        if fresh.size:
            raw_names = [raw.decode("utf-8", "backslashreplace") for raw in table.raw_names(fresh)]
            module, is_kernel = module_name(binary.kind, binary.path), binary.kind in _KERNEL_KINDS
            shown = shown_names(raw_names, bool(table.facts.traits & Traits.GO))
            numbers[fresh] = [
                self._functions.number(s.name, module, CodeKind.KERNEL if is_kernel else s.code, raw_name=raw)
                for s, raw in zip(shown, raw_names, strict=True)
            ]
        return numbers[symbols]


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
