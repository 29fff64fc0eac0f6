# SPDX-License-Identifier: Apache-2.0
"""Abbreviations: what the entries of a unit look like, worked out once so that millions of entries can be stepped over.

An entry without code or children whose forms all have one size is stepped over by adding a number. Of an entry with code the
wanted values are taken by one struct call when all its forms have one size, else one by one.
"""

import operator
import re
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from server.symbols.dwarf.constants import ADDRESS_INDEXES, LEB_FORMS, Attribute, Form, Tag
from server.symbols.dwarf.shape import DwarfError, Shape, sleb, uleb

WANTED = (
    Attribute.LOW_PC,
    Attribute.HIGH_PC,
    Attribute.RANGES,
    Attribute.ABSTRACT_ORIGIN,
    Attribute.SPECIFICATION,
    Attribute.CALL_FILE,
    Attribute.CALL_LINE,
    Attribute.SIBLING,
)
"""Values that an entry with code is read for, in this order."""

LINKAGE = frozenset((Attribute.LINKAGE_NAME, Attribute.MIPS_LINKAGE_NAME))
ONWARD = frozenset((Attribute.ABSTRACT_ORIGIN, Attribute.SPECIFICATION))
NAMING = LINKAGE | ONWARD | {Attribute.NAME}
"""What an entry is read for when it is to name something."""

Values = tuple[int | None, ...]

STEP_STRING, STEP_LEB, STEP_BLOCK, STEP_BLOCK1, STEP_BLOCK2, STEP_BLOCK4, STEP_ODD = -1, -2, -3, -4, -5, -6, -7
_STEPS = {
    Form.STRING: STEP_STRING,
    Form.BLOCK: STEP_BLOCK,
    Form.EXPRLOC: STEP_BLOCK,
    Form.BLOCK1: STEP_BLOCK1,
    Form.BLOCK2: STEP_BLOCK2,
    Form.BLOCK4: STEP_BLOCK4,
}

_OPEN_TAGS = frozenset(
    (
        Tag.COMPILE_UNIT,
        Tag.PARTIAL_UNIT,
        Tag.SKELETON_UNIT,
        Tag.NAMESPACE,
        Tag.MODULE,
        Tag.SUBPROGRAM,
        Tag.LEXICAL_BLOCK,
        Tag.INLINED_SUBROUTINE,
        Tag.TRY_BLOCK,
        Tag.CATCH_BLOCK,
    )
)
"""Entries below which there may be code; whole subtrees of others are jumped over where the compiler says how far they reach."""
CLASSES = frozenset((Tag.CLASS_TYPE, Tag.STRUCTURE_TYPE, Tag.UNION_TYPE))
"""Inside of functions these may hold code as well: gcc puts the function behind a lambda's pointer into the lambda's class. Those of a
lambda outside of all functions are passed over with the many classes there: they keep the name of their symbol."""
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
MAX_ABBREVIATIONS = 1 << 20
MAX_ATTRIBUTES = 1 << 12
"""Of one abbreviation; compilers give it some dozens."""
Attributes = tuple[tuple[int, int, int], ...]


@dataclass(slots=True)
class Abbreviation:
    """One abbreviation, ready for use in units of one shape."""

    tag: int
    has_children: bool
    attributes: tuple[tuple[int, int, int], ...]
    """(attribute, form, implicit constant) each."""
    code_bytes: int
    size: int | None
    """Bytes of an entry with its code; None when they vary."""
    is_code: bool
    """A function or an inlined call that may have addresses."""
    is_call: bool
    """An inlined call that may."""
    sibling: int | None
    """Index of the sibling in `attributes` when the subtree may be jumped over."""
    steps: tuple[int, ...] = ()
    """How to step over an entry whose size varies: bytes to skip, or one of the negative numbers below."""
    steps_to_sibling: tuple[int, ...] = ()
    forms: dict[int, int] = field(default_factory=dict)
    take: Callable[[bytes, int], Values] | None = None
    """The wanted values of an entry at a place, for entries of one size."""
    sibling_at: int | None = None
    """Bytes from the start of an entry to its sibling, where that is a number of 4 bytes at one place."""
    has_one_range: bool = False
    """Its code is one range: an address and a length."""
    number: int = -1
    """Where it stands in Found.shapes, once it is there."""
    names: tuple[tuple[int, int, int], ...] | None = None
    """(attribute, form, bytes from the start of an entry) of what names it or sends on; None when these places vary."""


@dataclass(slots=True)
class AbbreviationTable:
    """The abbreviations of a unit. `sizes` has an entry for each first byte: bytes to step over, 0 when there is more to do."""

    sizes: list[int]
    by_code: dict[int, Abbreviation]


class Abbreviations:
    """The tables of one .debug_abbrev: each is read once, and abbreviations that are alike in all of them are worked out once."""

    def __init__(self) -> None:
        self._tables: dict[tuple[int, Shape], AbbreviationTable] = {}
        self._known: dict[Shape, Known] = {}

    def table(self, data: bytes, place: int, shape: Shape) -> AbbreviationTable:
        """The table at `place`. Raises DwarfError."""
        key = (place, shape)
        if key not in self._tables:
            self._tables[key] = parse_abbreviations(data, place, shape, self._known.setdefault(shape, {}))
        return self._tables[key]


Known = dict[tuple[int, bytes], Abbreviation]
"""Abbreviations of one shape by the width of their code and the bytes behind it."""
_LEB, _SOME = rb"[\x80-\xff]*+[\x00-\x7f]", rb"(?:[\x80-\xff]++[\x00-\x7f]|[\x01-\x7f])"
_BODY = re.compile(_LEB + rb"[\x00-\xff](?:" + _SOME + rb"(?:\x21" + _LEB + rb"|(?!\x21)" + _SOME + rb"))*+\x00\x00")
"""Tag, whether there are children, attributes and forms (a constant behind form 0x21), two zeros."""


def parse_abbreviations(data: bytes, place: int, shape: Shape, known: Known) -> AbbreviationTable:
    """The table at `place` of .debug_abbrev; `known` remembers abbreviations by what they are made of. Raises DwarfError."""
    found: dict[int, Abbreviation] = {}
    sizes = [0] * 256
    for _ in range(MAX_ABBREVIATIONS):
        code, behind = (data[place], place + 1) if data[place] < 0x80 else uleb(data, place)
        if not code:
            return AbbreviationTable(sizes, found)
        body = _BODY.match(data, behind)
        likeness = (behind - place, body[0] if body else b"")
        entry = known.get(likeness) if body else None
        if entry is None or body is None:
            kind, attributes, end = _one(data, behind)
            entry = _abbreviation(shape, _code_bytes(code), kind, attributes)
            if body is not None and body.end() == end and behind - place == entry.code_bytes:
                known[likeness] = entry
        else:
            end = body.end()
        found[code] = entry
        if code < 0x80 and entry.size is not None and not entry.has_children and not entry.is_code:
            sizes[code] = entry.size
        place = end
    raise DwarfError("abbreviations without end")


def find_abbreviation(data: bytes, place: int, shape: Shape, wanted: int) -> Abbreviation:
    """The abbreviation with a code in the table at `place`; the others are passed over. Raises DwarfError."""
    for _ in range(MAX_ABBREVIATIONS):
        code, place = uleb(data, place)
        if not code:
            break
        kind, attributes, place = _one(data, place)
        if code == wanted:
            return _abbreviation(shape, _code_bytes(code), kind, attributes)
    raise DwarfError(f"unknown abbreviation {wanted}")


def _code_bytes(code: int) -> int:
    return max(1, (code.bit_length() + 6) // 7)


def _one(data: bytes, place: int) -> tuple[tuple[int, bool], Attributes, int]:
    """Tag with whether there are children, attributes, and the place behind them."""
    tag, place = uleb(data, place)
    if place >= len(data):
        raise DwarfError("abbreviation is cut")
    has_children = data[place] != 0
    attributes, place = _attributes(data, place + 1)
    return (tag, has_children), attributes, place


def _attributes(data: bytes, place: int) -> tuple[Attributes, int]:
    found: list[tuple[int, int, int]] = []
    while place + 1 < len(data) and len(found) < MAX_ATTRIBUTES:
        attribute, form = data[place], data[place + 1]
        if attribute < 0x80 and form < 0x80:  # Almost all are.
            place += 2
        else:
            attribute, place = uleb(data, place)
            form, place = uleb(data, place)
        constant = 0
        if form == Form.IMPLICIT_CONST:
            constant, place = sleb(data, place)
        if not attribute and not form:
            return tuple(found), place
        found.append((attribute, form, constant))
    raise DwarfError("abbreviation without end")


def _abbreviation(shape: Shape, code_bytes: int, kind: tuple[int, bool], attributes: tuple[tuple[int, int, int], ...]) -> Abbreviation:
    tag, has_children = kind
    names = [attribute for attribute, _, _ in attributes]
    sizes = [shape.size_of(form) for _, form, _ in attributes]
    is_fixed = all(size is not None for size in sizes)
    is_code = tag in (Tag.SUBPROGRAM, Tag.INLINED_SUBROUTINE) and (Attribute.LOW_PC in names or Attribute.RANGES in names)
    may_jump = has_children and Attribute.SIBLING in names and not is_code and (tag not in _OPEN_TAGS or tag == Tag.SUBPROGRAM)
    entry = Abbreviation(
        tag=tag,
        has_children=has_children,
        attributes=attributes,
        code_bytes=code_bytes,
        size=code_bytes + sum(size or 0 for size in sizes) if is_fixed else None,
        is_code=is_code,
        is_call=is_code and tag == Tag.INLINED_SUBROUTINE,
        sibling=names.index(Attribute.SIBLING) if may_jump else None,
        forms={attribute: form for attribute, form, _ in attributes},
    )
    if is_fixed and is_code:
        entry.take = _taker(shape, entry, [size or 0 for size in sizes])
    forms = entry.forms
    entry.has_one_range = (
        Attribute.RANGES not in forms
        and forms.get(Attribute.LOW_PC) == Form.ADDR
        and forms.get(Attribute.HIGH_PC, Form.ADDR) not in {Form.ADDR, *ADDRESS_INDEXES}
    )
    entry.steps = _steps(entry, sizes)
    if entry.sibling is not None:
        entry.steps_to_sibling = _steps(entry, sizes[: entry.sibling])
        if attributes[entry.sibling][1] == Form.REF4 and len(entry.steps_to_sibling) == 1 and entry.steps_to_sibling[0] > 0:
            entry.sibling_at = entry.steps_to_sibling[0]
    entry.names = _name_places(entry, sizes)
    return entry


def _name_places(entry: Abbreviation, sizes: Sequence[int | None]) -> tuple[tuple[int, int, int], ...] | None:
    found, place = [], entry.code_bytes
    last = max((i for i, (attribute, _, _) in enumerate(entry.attributes) if attribute in NAMING), default=-1)
    for (attribute, form, _), size in zip(entry.attributes[: last + 1], sizes, strict=False):
        if attribute in NAMING:
            found.append((attribute, form, place))
            if attribute in LINKAGE:  # What is behind a linkage name is not read.
                break
        if size is None:
            return None
        place += size
    return tuple(found)


def _steps(entry: Abbreviation, sizes: Sequence[int | None]) -> tuple[int, ...]:
    steps, fixed = [], entry.code_bytes
    for (_, form, _), size in zip(entry.attributes, sizes, strict=False):
        if size is not None:
            fixed += size
            continue
        steps += [fixed] if fixed else []
        fixed = 0
        steps.append(STEP_LEB if form in LEB_FORMS else _STEPS.get(Form(form), STEP_ODD) if form in _STEPS else STEP_ODD)
    return tuple([*steps, fixed] if fixed else steps)


def step_over(data: bytes, place: int, steps: tuple[int, ...], shape: Shape) -> int:
    """The place behind what `steps` describe. Raises DwarfError for forms that nobody knows."""
    for step in steps:
        if step >= 0:
            place += step
        elif step == STEP_LEB:
            while data[place] > 0x7F:
                place += 1
            place += 1
        elif step == STEP_BLOCK:
            length = data[place]
            if length > 0x7F:
                length, place = uleb(data, place)
                place += length
            else:
                place += 1 + length
        elif step == STEP_STRING:
            place = data.index(b"\0", place) + 1
        elif step == STEP_BLOCK1:
            place += 1 + data[place]
        elif step in (STEP_BLOCK2, STEP_BLOCK4):
            width = 2 if step == STEP_BLOCK2 else 4
            place += width + shape.number(data, place, width)
        else:
            raise DwarfError(f"value of unknown form at {place}")
    return place


def _taker(shape: Shape, entry: Abbreviation, sizes: list[int]) -> Callable[[bytes, int], Values] | None:
    """Read all wanted values by one struct call; None when one of them has an odd width."""
    layout, picks, constants = ["<" if shape.byte_order == "little" else ">", f"{entry.code_bytes}x"], {}, []
    taken = 0
    for (attribute, form, constant), size in zip(entry.attributes, sizes, strict=True):
        if attribute not in WANTED or attribute in picks:
            layout.append(f"{size}x")
        elif form == Form.IMPLICIT_CONST:
            constants.append(constant)
            picks[attribute] = -len(constants)
        elif size in _CODES:
            layout.append(_CODES[size])
            picks[attribute] = taken
            taken += 1
        else:
            return None
    tail: Values = (*constants, None)
    order = [
        taken + len(constants) if picks.get(wanted) is None else picks[wanted] if picks[wanted] >= 0 else taken - 1 - picks[wanted]
        for wanted in WANTED
    ]
    unpack, pick = struct.Struct("".join(layout)).unpack_from, operator.itemgetter(*order)

    def take(data: bytes, place: int) -> Values:
        values: Values = pick(unpack(data, place) + tail)
        return values

    return take
