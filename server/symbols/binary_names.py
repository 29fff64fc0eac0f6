# SPDX-License-Identifier: Apache-2.0
"""Names of one binary as its table has them, shown as people read them; each is decoded and demangled once.

What a table refers to by number (symbols, texts) is given a number of the service's book on first use.
"""

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from server.profile.names import CodeKind
from server.store.protocol import BinaryInfo
from server.symbols.demangle import bounded, shown_names
from server.symbols.functions import FunctionNumbers
from server.symbols.identity import module_name
from server.symbols.symtab import I64, U64
from server.symbols.table import Table, Traits
from server.symbols.unfold import Unfolded

I32 = npt.NDArray[np.int32]
BUILD_DIGITS = 8
MAX_ALIASES = 32
"""Other names of one function that are searched for."""
_KERNEL_KINDS = (pb.BINARY_KIND_KERNEL, pb.BINARY_KIND_MODULE)


class Book:
    """Functions and files of one service. Numbers only grow; file 0 is the unknown one."""

    def __init__(self) -> None:
        self.functions = FunctionNumbers()
        self.files: list[str] = [""]
        self._numbers: dict[str, int] = {"": 0}

    def file(self, path: str) -> int:
        """The number of a file."""
        number = self._numbers.setdefault(path, len(self.files))
        if number == len(self.files):
            self.files.append(path)
        return number


class BinaryNames:
    """Numbers in the book for what one table refers to."""

    def __init__(self, book: Book, binary: BinaryInfo, table: Table | None) -> None:
        texts = 0 if table is None or table.inlines is None else table.inlines.text_bounds.size - 1
        self.table = table
        self._book = book
        self._module = module_name(binary.kind, binary.path)
        # A place without a name is the same only in the same build: what it belongs to says which.
        build = (binary.build_id or binary.content_hash).hex()[:BUILD_DIGITS]
        self._owner = f"{self._module} (build {build})" if build else self._module
        self._build_id = binary.build_id.hex()
        self._is_kernel = binary.kind in _KERNEL_KINDS
        self._of_symbol = np.full(0 if table is None else len(table), -1, np.int32)
        self._of_text = np.full(texts, -1, np.int32)
        self._file_of_text = np.full(texts, -1, np.int32)

    def functions(self, parts: Unfolded, addresses: U64) -> I32:
        """The function of each part; `addresses` are those of the frames, for parts that nothing names."""
        numbers = np.full(len(parts), -1, np.int32)
        has_symbol, has_text = parts.symbols >= 0, parts.names > 0
        numbers[has_symbol] = self._symbols(parts.symbols[has_symbol])
        numbers[has_text] = self._texts(parts.names[has_text])
        bare = numbers < 0
        code = CodeKind.KERNEL if self._is_kernel else CodeKind.UNKNOWN
        numbers[bare] = [
            self._book.functions.number(f"[unknown] {self._module}+{address:#x}", self._owner, code, is_named=False)
            for address in addresses[parts.frames[bare]].tolist()
        ]
        for number in np.unique(numbers[bare]).tolist():
            self._book.functions.met_in(number, self._build_id)
        return numbers

    def files(self, texts: I64) -> I32:
        """The file of each part; 0 for none."""
        if self.table is None or self.table.inlines is None:
            return np.zeros(texts.size, np.int32)
        for text in _fresh(self._file_of_text, texts).tolist():
            self._file_of_text[text] = self._book.file(bounded(_decoded(self.table.inlines.text(text))))
        return self._file_of_text[texts]

    def _symbols(self, symbols: I64) -> I32:
        table = self.table
        fresh = _fresh(self._of_symbol, symbols)
        if table is not None and fresh.size:
            aliases = [[_decoded(name) for name in table.aliases(symbol)[:MAX_ALIASES]] for symbol in fresh.tolist()]
            self._of_symbol[fresh] = self._numbers(table.raw_names(fresh), aliases)
        return self._of_symbol[symbols]

    def _texts(self, texts: I64) -> I32:
        fresh = _fresh(self._of_text, texts)
        if self.table is not None and self.table.inlines is not None and fresh.size:
            inlines = self.table.inlines
            self._of_text[fresh] = self._numbers([inlines.text(text) for text in fresh.tolist()], [[]] * fresh.size)
        return self._of_text[texts]

    def _numbers(self, raw_names: list[bytes], aliases: list[list[str]]) -> list[int]:
        is_go = self.table is not None and bool(self.table.facts.traits & Traits.GO)
        raw = [_decoded(name) for name in raw_names]
        shown = shown_names(raw, is_go)
        others = shown_names([name for some in aliases for name in some], is_go)
        numbers, at = [], 0
        for name, own, some in zip(shown, raw, aliases, strict=True):
            also = tuple(dict.fromkeys(other.name for other in others[at : at + len(some)] if other.name != name.name))
            at += len(some)
            code = CodeKind.KERNEL if self._is_kernel else name.code
            number = self._book.functions.number(name.name, self._module, code, raw_name=own, aliases=also)
            self._book.functions.met_in(number, self._build_id)
            numbers.append(number)
        return numbers


def _fresh(known: I32, wanted: I64) -> I64:
    """Those of the wanted that have no number yet, each once."""
    is_hit = np.zeros(known.size, np.bool_)
    is_hit[wanted] = True
    return np.flatnonzero(is_hit & (known < 0))


def _decoded(name: bytes) -> str:
    return name.decode("utf-8", "backslashreplace")
