# SPDX-License-Identifier: Apache-2.0
"""Small damages that have broken parsers before: flipped bits, numbers at the edge, cuts, repeated and swapped stretches."""

import random

EDGES = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 1 << 62, (1 << 63) - 1, (1 << 64) - 1)
MOST_DAMAGES = 8


def mutated(data: bytes, dice: random.Random, hot: range | list[int] | None = None) -> bytes:
    """The bytes with one to eight damages; `hot` are places that half of them fall on."""
    found = bytearray(data)
    for _ in range(dice.randint(1, MOST_DAMAGES)):
        if not found:
            break
        place = dice.choice(hot) if hot and dice.random() < 0.5 else dice.randrange(len(found))
        place = min(place, len(found) - 1)
        kind = dice.randrange(16)
        if kind < 5:
            found[place] ^= 1 << dice.randrange(8)
        elif kind < 8:
            found[place] = dice.randrange(256)
        elif kind < 12:
            width = dice.choice((1, 2, 4, 8))
            found[place : place + width] = (dice.choice(EDGES) & ((1 << 8 * width) - 1)).to_bytes(width, "little")
        elif kind == 12:
            del found[place : place + dice.randint(1, 16)]
        elif kind == 13:
            found[place:place] = found[place : place + dice.randint(1, 64)]
        elif kind == 14:
            other = dice.randrange(len(found))
            size = dice.randint(1, 32)
            found[place : place + size] = found[other : other + size]
        elif dice.random() < 0.3:
            del found[place:]
    return bytes(found)
