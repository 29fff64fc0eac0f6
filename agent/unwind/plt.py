# SPDX-License-Identifier: Apache-2.0
"""Rules for the code that linkers make for calls into other files: few of them write any.

GNU ld describes the .plt of a dynamic program; static programs (which call by it what the C library chooses at its start), gold and LLVM's
linker leave theirs without. The code is always one of these (System V ABI, x86-64, 5.2; binutils, elf_x86_64_lazy_plt):

    lazy     PLT0    push GOT[1]         6 bytes; the call and the number of the function lie on the stack
                     jmp GOT[2]
             PLTn    jmp GOT[n]          16 bytes each
                     push n              ends at byte 11, or at 9 behind an endbr64
                     jmp PLT0
    others   jmp GOT[n]                  nothing is ever pushed
"""

from dataclasses import dataclass

import numpy as np

from agent.records.unwind import RuleKind, UnwindTable, rule

PLT_NAMES = (b".plt\0", b".plt.sec\0", b".plt.got\0", b".iplt\0")
HEAD_BYTES = 32
"""What tells the kinds apart: PLT0 and one entry."""
_PUSH_GOT, _ENDBR64 = b"\xff\x35", b"\xf3\x0f\x1e\xfa"
_ENTRY_BYTES, _PUSH_GOT_BYTES = 16, 6
_CALLED = rule(RuleKind.SP, 1)


@dataclass(frozen=True, slots=True)
class Plt:
    """Virtual addresses [start, end) of one section."""

    start: int
    end: int
    pushed_at: int
    """Byte of each entry from which on the number of the function lies on the stack; 0 where entries only jump."""


def plt_of(head: bytes, start: int, end: int) -> Plt:
    """What the first HEAD_BYTES of a section say."""
    if not head.startswith(_PUSH_GOT):
        return Plt(start, end, 0)
    return Plt(start, end, 9 if head[_ENTRY_BYTES:].startswith(_ENDBR64) else 11)


def with_plts(table: UnwindTable, plts: tuple[Plt, ...]) -> UnwindTable:
    """The table with rules for the sections that it has none for at all."""
    for plt in plts:
        at = int(np.searchsorted(table.addresses, np.uint64(plt.start), side="right"))
        behind = int(np.searchsorted(table.addresses, np.uint64(plt.end), side="left"))
        if plt.start >= plt.end or behind != at or (at and table.rules[at - 1] != RuleKind.NONE):
            continue
        rows = _rows_of(plt)
        if behind == len(table.addresses) or table.addresses[behind] != plt.end:
            rows.append((plt.end, RuleKind.NONE))
        is_new_row = not at or table.addresses[at - 1] != plt.start
        kept = at if is_new_row else at - 1
        addresses, rules = (np.array(column) for column in zip(*rows, strict=True))
        table = UnwindTable(
            np.concatenate((table.addresses[:kept], addresses.astype(np.uint64), table.addresses[behind:])),
            np.concatenate((table.rules[:kept], rules.astype(np.uint32), table.rules[behind:])),
        )
    return _without_repeats(table)


def _rows_of(plt: Plt) -> list[tuple[int, int]]:
    first_entry = plt.start + _ENTRY_BYTES
    if not plt.pushed_at or plt.end <= first_entry:
        return [(plt.start, _CALLED)]
    return [
        (plt.start, rule(RuleKind.SP, 2)),
        (plt.start + _PUSH_GOT_BYTES, rule(RuleKind.SP, 3)),
        (first_entry, rule(RuleKind.PLT, plt.pushed_at)),
    ]


def _without_repeats(table: UnwindTable) -> UnwindTable:
    """Neighbours differ in every table: code behind a section may go by its last rule."""
    is_change = np.ones(len(table.rules), bool)
    is_change[1:] = table.rules[1:] != table.rules[:-1]
    return UnwindTable(table.addresses[is_change], table.rules[is_change])
