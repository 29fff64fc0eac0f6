# SPDX-License-Identifier: Apache-2.0
"""Line programs run on whole arrays end as they do when each operation is carried out by itself, whatever their bytes are."""

import random

import numpy as np
import pytest

from server.symbols.dwarf import line_program
from server.symbols.dwarf.line_header import LineHeader
from server.symbols.dwarf.line_program import END, LinePrograms
from server.symbols.dwarf.shape import DwarfError, sleb, uleb

FILES = [0, 7, 23]
RowsOfProgram = list[tuple[int, int]]


def header(opcode_base: int = 13, lengths: bytes = b"\0\1\1\1\1\0\0\0\1\0\0\1") -> LineHeader:
    return LineHeader(0, 0, 3, -5, 14, opcode_base, lengths[: opcode_base - 1], 8)


def one_by_one(table: LineHeader, program: bytes) -> RowsOfProgram:  # noqa: PLR0912 -- one branch per operation
    """Rows that change something, by DWARF 5, 6.2.5; an operation that reaches behind the end is none."""
    rows: RowsOfProgram = []
    address, line, file, last, place = 0, 1, FILES[1], END, 0
    data = program + b"\x80" * 11
    while place < len(program):
        start, operation, place = place, data[place], place + 1
        row, steps = False, [0, 0]
        try:
            if operation >= table.opcode_base:
                steps, row = list(divmod(operation - table.opcode_base, 14)), True
                steps[1] -= 5
            elif operation == 0:
                length, place = uleb(data, place)
                kind, behind = data[place] if length else 0, place + length
                if behind > len(program):
                    break
                address = int.from_bytes(data[place + 1 : place + 1 + min(length - 1, 8)], "little") if kind == 2 else address
                place = behind
                if kind == 1:
                    rows.append((address, END))
                    address, line, file, last = 0, 1, FILES[1], END
            elif operation == 1:
                row = True
            elif operation == 2:
                steps[0], place = uleb(data, place)
            elif operation == 3:
                steps[1], place = sleb(data, place)
            elif operation == 4:
                number, place = uleb(data, place)
                file = FILES[number] if number < len(FILES) else 0
            elif operation == 8:
                steps[0] = (255 - table.opcode_base) // 14
            elif operation == 9:
                steps, place = [int.from_bytes(data[place : place + 2], "little"), 0], place + 2
            else:
                for _ in range(1 if operation == 5 else table.lengths[operation - 1]):
                    _, place = uleb(data, place)
        except (DwarfError, IndexError):
            break
        if place > len(program):
            break
        address = (address + steps[0] * (1 if operation == 9 else 3)) % (1 << 64)
        line = (line + steps[1]) % (1 << 64)
        here = file << 32 | line & 0xFFFF_FFFF
        if row and here != last:
            rows.append((address, here))
            last = here
        assert place > start
    return rows


def some_program(dice: random.Random) -> bytes:
    """Operations as compilers write them, some of them odd, and at times cut or followed by anything."""
    parts = []
    for _ in range(dice.randrange(60)):
        parts.append(
            dice.choice(
                (
                    bytes([dice.randrange(13, 256)]),
                    bytes([dice.randrange(13, 256)]),
                    b"\1",
                    b"\2" + bytes([dice.randrange(128)]),
                    b"\2" + bytes([dice.randrange(128, 256), dice.randrange(128)]),
                    b"\3" + bytes([dice.randrange(128)]),
                    b"\3" + bytes([dice.randrange(128, 256), dice.randrange(128)]),
                    b"\4" + bytes([dice.randrange(5)]),
                    b"\5\7\6",
                    b"\x08\x0a\x0b",
                    b"\x09" + dice.randbytes(2),
                    b"\x0c\x81\1",
                    b"\0\x09\2" + dice.randbytes(8),
                    b"\0\5\2" + dice.randbytes(4),
                    b"\0\2\4\7",
                    b"\0\1\1",
                    b"\0\0",
                )
            )
        )
    whole = b"".join(parts)
    return dice.choice((whole, whole + b"\0\1\1", whole[: dice.randrange(len(whole) + 1)], whole + dice.randbytes(7)))


@pytest.mark.parametrize("window_bytes", [23, 1 << 20])
@pytest.mark.parametrize("opcode_base", [13, 10, 4, 1])
def test_all_at_once_is_one_by_one(monkeypatch: pytest.MonkeyPatch, window_bytes: int, opcode_base: int) -> None:
    monkeypatch.setattr(line_program, "WINDOW_BYTES", window_bytes)
    dice = random.Random(7)
    for _ in range(3 if window_bytes == 23 else 23):
        table, texts = header(opcode_base), [some_program(dice) for _ in range(7)]
        programs = LinePrograms(table, "little")
        for text in texts:
            programs.add(text, FILES)
        pieces = list(programs.run())
        rows = [row for piece in pieces for row in zip(piece.addresses.tolist(), piece.places.tolist(), strict=True)]
        wanted = [one_by_one(table, text) for text in texts]
        assert rows == [row for some in wanted for row in some]
        counts = np.cumsum([0, *[piece.places.size for piece in pieces]])
        begins = [begin + shift for piece, shift in zip(pieces, counts.tolist(), strict=False) for begin in piece.begins.tolist()]
        if all(texts):
            assert begins == np.cumsum([0, *[len(some) for some in wanted[:-1]]]).tolist()


def test_an_operation_that_is_too_long_ends_its_program_only() -> None:
    programs = LinePrograms(header(), "little")
    far = b"\0" + b"\xff" * 8 + b"\x7f"
    programs.add(b"\x20" + far + b"\x20" * 7, FILES)
    programs.add(b"\x20\0\1\1", FILES)
    (piece,) = programs.run()
    assert [place == END for place in piece.places.tolist()] == [False, False, True]
    assert piece.begins.tolist() == [0, 1]
