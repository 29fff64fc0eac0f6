# SPDX-License-Identifier: Apache-2.0
r"""Folded stacks as flamegraph.pl reads them: `thread;outermost;...;leaf count`, kernel frames with the suffix `_[k]`.

Inside the server a stack is a list of frames; text joins them, so what would break it is escaped, and can be read back:

    \ ; newline and all control characters    \x5c \x3b \x0a ...   (two hex digits)
    a byte that is not UTF-8 (surrogate)      \xff                 (80 and above are always bytes)
    line and direction controls of Unicode    \u2028 \u202e ...    (four hex digits)

A frame whose name ends in `_[k]` and is no kernel frame has its last character escaped.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from server.profile.calltree import ROOT
from server.profile.names import CodeKind
from server.profile.nametable import NameTable
from server.profile.totals import WeighedTree

KERNEL_SUFFIX = "_[k]"
MOST_REJECTED_KEPT = 100
_UNSAFE = re.compile("[\\\\;\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4}))")
_COUNT = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Frame:
    """One frame of a folded stack."""

    name: str
    is_kernel: bool = False


@dataclass(frozen=True, slots=True)
class FoldedStack:
    """One line."""

    thread: str
    frames: tuple[Frame, ...]
    """Outermost first; may be empty."""
    count: int


@dataclass(frozen=True, slots=True)
class Rejected:
    """A line that was not taken."""

    line: int
    """From 1."""
    reason: str


@dataclass(slots=True)
class Imported:
    """What a folded text held."""

    stacks: list[FoldedStack] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    """The first ones."""
    rejected_total: int = 0


def escape(text: str) -> str:
    """Make a name safe to join."""
    return _UNSAFE.sub(_escape_one, text) if _UNSAFE.search(text) else text


def unescape(text: str) -> str:
    """Give back what `escape` was given."""
    return _ESCAPED.sub(_unescape_one, text)


def export_lines(weighed: WeighedTree) -> Iterator[str]:
    """Write one line per stack of a tree, in preorder and without newlines; the names of depth 1 are the threads."""
    tree, names = weighed.tree, _NamesAsText(weighed.tree.table)
    path: list[str] = []
    own = weighed.own
    has_value = weighed.total > 0
    for node in has_value.nonzero()[0].tolist():
        if node == ROOT:
            continue
        del path[int(tree.depth[node]) - 1 :]
        path.append(names.text(int(tree.name[node])))
        if own[node]:
            yield f"{';'.join(path)} {int(own[node])}"


def export_two_counts(a: WeighedTree, b: WeighedTree) -> Iterator[str]:
    """Write `stack count_a count_b` for each stack of two sides of one tree, as difffolded.pl does and flamegraph.pl reads."""
    tree, names = a.tree, _NamesAsText(a.tree.table)
    path: list[str] = []
    for node in ((a.total > 0) | (b.total > 0)).nonzero()[0].tolist():
        if node == ROOT:
            continue
        del path[int(tree.depth[node]) - 1 :]
        path.append(names.text(int(tree.name[node])))
        if a.own[node] or b.own[node]:
            yield f"{';'.join(path)} {int(a.own[node])} {int(b.own[node])}"


def export_stacks(stacks: Iterable[FoldedStack]) -> Iterator[str]:
    """Write stacks that were imported or made by hand, as `export_lines` does."""
    for stack in stacks:
        yield f"{';'.join([escape(stack.thread), *map(_frame_text, stack.frames)])} {stack.count}"


class FoldedLines:
    """The stacks of lines as they are read: nothing is kept of them but each frame and thread once, and what was rejected so far.

    Lines that are not `stack count` are counted with line number and reason; CRLF ends a line too.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self.rejected: list[Rejected] = []
        """The first ones."""
        self.rejected_total = 0

    @property
    def stacks(self) -> Iterator[FoldedStack]:
        """All of them, once."""
        frames, threads = dict[str, Frame](), dict[str, str]()
        for number, line in enumerate(self._lines, 1):
            parsed = _parse(line.removesuffix("\n").removesuffix("\r"), frames, threads)
            if isinstance(parsed, FoldedStack):
                yield parsed
                continue
            self.rejected_total += 1
            if len(self.rejected) < MOST_REJECTED_KEPT:
                self.rejected.append(Rejected(number, parsed))


def import_text(text: str) -> Imported:
    """Read folded text, whole (see FoldedLines)."""
    lines = text.split("\n")
    if lines and not lines[-1]:
        lines.pop()
    read = FoldedLines(lines)
    stacks = list(read.stacks)
    return Imported(stacks, read.rejected, read.rejected_total)


class _NamesAsText:
    """Escaped names by number, each made once."""

    def __init__(self, table: NameTable) -> None:
        self._table = table
        self._texts: dict[int, str] = {}

    def text(self, number: int) -> str:
        text = self._texts.get(number)
        if text is None:
            is_kernel = self._table.codes[number] == CodeKind.KERNEL
            text = self._texts[number] = _frame_text(Frame(self._table.names[number], is_kernel))
        return text


def _frame_text(frame: Frame) -> str:
    text = escape(frame.name)
    if frame.is_kernel:
        return text + KERNEL_SUFFIX
    return text[:-1] + r"\x5d" if text.endswith(KERNEL_SUFFIX) else text


def _parse(line: str, known: dict[str, Frame], threads: dict[str, str]) -> FoldedStack | str:
    """Read one line, or say why not. `known` holds frames by their text, `threads` their names: stacks share them."""
    if not line.strip():
        return "blank line"
    path, space, count = line.rpartition(" ")
    if not space:
        return "a tab where a space must stand before the count" if "\t" in line else "no count at the end"
    if not _COUNT.fullmatch(count):
        return f"the count {escape(count[:40])!r} is not a whole number of at most 19 digits"
    if not path:
        return "no stack before the count"
    thread, *frames = path.split(";")
    for text in frames:
        if text not in known:
            known[text] = _parse_frame(text)
    return FoldedStack(threads.setdefault(thread, unescape(thread)), tuple(known[text] for text in frames), int(count))


def _parse_frame(text: str) -> Frame:
    is_kernel = text.endswith(KERNEL_SUFFIX)
    return Frame(unescape(text.removesuffix(KERNEL_SUFFIX)), is_kernel)


def _escape_one(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}"


def _unescape_one(found: re.Match[str]) -> str:
    byte, character = found.groups()
    if character:
        return chr(int(character, 16))
    code = int(byte, 16)
    return chr(code if code < 0x80 else 0xDC00 + code)
