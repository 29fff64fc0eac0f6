# SPDX-License-Identifier: Apache-2.0
"""Profiles in pprof's format, written by hand from its description: fields as (number, value), values numbers or bytes."""

from collections.abc import Sequence

Value = int | bytes


def varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def message(*fields: tuple[int, Value]) -> bytes:
    """Fields in their order: numbers as varints, bytes with their length."""
    parts = [
        varint(number << 3) + varint(value) if isinstance(value, int) else varint(number << 3 | 2) + varint(len(value)) + value
        for number, value in fields
    ]
    return b"".join(parts)


def packed(values: Sequence[int]) -> bytes:
    """Repeated numbers in one field."""
    return b"".join(map(varint, values))


def pprof_of(stacks: Sequence[tuple[Sequence[str], int]]) -> bytes:
    """A profile of stacks, root first, with the sample types samples/count and cpu/nanoseconds; each function has a location."""
    names = sorted({name for frames, _ in stacks for name in frames})
    strings = ["", "samples", "count", "cpu", "nanoseconds", "/opt/app", *names]
    number = {name: at + 1 for at, name in enumerate(names)}
    body = message((1, message((1, 1), (2, 2))), (1, message((1, 3), (2, 4))))
    for frames, count in stacks:
        ids = packed([number[name] for name in reversed(frames)])
        body += message((2, message((1, ids), (2, packed([count, count * 10_000_000])))))
    body += message((3, message((1, 1), (5, 5))))
    for name in names:
        at = number[name]
        body += message((4, message((1, at), (2, 1), (3, 0x1000 + at), (4, message((1, at), (2, 7))))), (5, message((1, at), (2, 5 + at))))
    return body + message(*((6, text.encode()) for text in strings))
