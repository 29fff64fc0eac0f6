# SPDX-License-Identifier: Apache-2.0
"""Writes C declarations of BTF types, with every member at the offset that the running kernel has it.

A struct is written plainly when C's own rules put its members where BTF says; else packed, with the gaps spelled out. Pointers
to structs stay typed, so that BCC can follow them, but only named: what a pointer leads to is declared when it is a root itself.
"""

from dataclasses import dataclass

from agent.errors import KernelError
from agent.kernel.btf import VOID, Btf, Kind, Member

_POINTER_BYTES = 8
_COMPOSITE = frozenset({Kind.STRUCT, Kind.UNION})
_UNSIGNED = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long long"}
_DEPTH_LIMIT = 64


@dataclass(frozen=True, slots=True)
class _Layout:
    size_bytes: int
    align_bytes: int
    is_packed: bool


class TypeWriter:
    """Collects declarations; each type comes after those it holds by value."""

    def __init__(self, btf: Btf) -> None:
        self._btf = btf
        self._layouts: dict[int, _Layout] = {}
        self._pending: set[int] = set()
        self._written: dict[int, str] = {}
        self._named_only: dict[str, None] = {}

    def add_composite(self, type_id: int) -> None:
        """Declare a named struct or union and everything it holds by value."""
        if type_id not in self._written:
            body = self._composite(type_id, 0)
            self._written[type_id] = f"{body};\n"

    def text(self) -> str:
        forwards = "".join(f"{name};\n" for name in sorted(self._named_only))
        return forwards + "".join(self._written.values())

    def declare(self, type_id: int, name: str, depth: int = 0) -> str:
        """The declaration of `name` with this type, without the semicolon."""
        if depth > _DEPTH_LIMIT:
            raise KernelError(f"BTF type {type_id} holds itself")
        type_id = self._btf.resolve(type_id)
        kind = Kind.INT if type_id == VOID else self._btf.kind(type_id)
        if type_id == VOID:
            return f"void {name}"
        if kind == Kind.POINTER:
            return self._pointer(type_id, name, depth)
        if kind == Kind.ARRAY:
            shape = self._btf.array(type_id)
            return self.declare(shape.element_type_id, f"{name}[{shape.length}]", depth + 1)
        if kind in (Kind.ENUM, Kind.ENUM64):
            return f"{_UNSIGNED[self._btf.size_bytes(type_id)]} {name}"
        if kind in _COMPOSITE:
            return f"{self._by_value(type_id, depth)} {name}".rstrip()
        if kind in (Kind.INT, Kind.FLOAT):
            return f"{self._btf.name(type_id)} {name}"
        raise KernelError(f"BTF type {type_id} of kind {kind.name} cannot be a member")

    def _pointer(self, type_id: int, name: str, depth: int) -> str:
        target = self._btf.resolve(self._btf.referred(type_id))
        if target == VOID:
            return f"void *{name}"
        kind = self._btf.kind(target)
        if kind in _COMPOSITE or kind == Kind.FORWARD:
            tag = self._tag(target)
            return f"{self._name_only(tag)} *{name}" if tag else f"void *{name}"
        if kind in (Kind.POINTER, Kind.INT):
            return self.declare(target, f"*{name}", depth + 1)
        return f"void *{name}"

    def _name_only(self, tag: str) -> str:
        self._named_only[tag] = None
        return tag

    def _tag(self, type_id: int) -> str:
        name = self._btf.name(type_id)
        if not name:
            return ""
        is_union = self._btf.kind(type_id) == Kind.UNION or (
            self._btf.kind(type_id) == Kind.FORWARD and self._btf.is_forward_union(type_id)
        )
        return f"{'union' if is_union else 'struct'} {name}"

    def _by_value(self, type_id: int, depth: int) -> str:
        tag = self._tag(type_id)
        if not tag:
            return self._composite(type_id, depth + 1)
        self.add_composite(type_id)
        return tag

    def _composite(self, type_id: int, depth: int) -> str:
        layout = self._layout(type_id)
        word = "union" if self._btf.kind(type_id) == Kind.UNION else "struct"
        name = self._btf.name(type_id)
        lines = self._members(type_id, layout, depth)
        tail = f" __attribute__((packed, aligned({layout.align_bytes})))" if layout.is_packed else ""
        return f"{word} {name} {{\n" + "".join(f"{line};\n" for line in lines) + f"}}{tail}"

    def _members(self, type_id: int, layout: _Layout, depth: int) -> list[str]:
        is_union = self._btf.kind(type_id) == Kind.UNION
        lines: list[str] = []
        at_bits = 0
        for member in self._btf.members(type_id):
            if layout.is_packed and not is_union:
                lines += _gap(at_bits, member.offset_bits, bool(member.bitfield_width), len(lines))
            width = f" : {member.bitfield_width}" if member.bitfield_width else ""
            lines.append(self.declare(member.type_id, member.name, depth) + width)
            at_bits = member.offset_bits + self._size_bits(member)
        if layout.is_packed and is_union:
            lines.append(f"char __size[{layout.size_bytes}]")
        elif layout.is_packed:
            lines += _gap(at_bits, layout.size_bytes * 8, False, len(lines))
        return lines

    def _size_bits(self, member: Member) -> int:
        return member.bitfield_width or self._size_and_align(member.type_id)[0] * 8

    def _size_and_align(self, type_id: int) -> tuple[int, int]:
        type_id = self._btf.resolve(type_id)
        kind = self._btf.kind(type_id)
        if kind == Kind.POINTER:
            return _POINTER_BYTES, _POINTER_BYTES
        if kind == Kind.ARRAY:
            shape = self._btf.array(type_id)
            size, align = self._size_and_align(shape.element_type_id)
            return size * shape.length, align
        if kind in _COMPOSITE:
            layout = self._layout(type_id)
            return layout.size_bytes, layout.align_bytes
        size = self._btf.size_bytes(type_id)
        return size, max(size, 1)

    def _layout(self, type_id: int) -> _Layout:
        if type_id not in self._layouts:
            if type_id in self._pending:
                raise KernelError(f"BTF type {type_id} holds itself")
            self._pending.add(type_id)
            size = self._btf.size_bytes(type_id)
            members = self._btf.members(type_id)
            natural = [self._size_and_align(member.type_id) for member in members]
            align = max((each[1] for each in natural), default=1)
            fits = self._btf.kind(type_id) == Kind.UNION or _has_natural_offsets(members, natural)
            if fits and _natural_end(members, natural, align) == size:
                self._layouts[type_id] = _Layout(size, align, False)
            else:
                while size % align:
                    align //= 2
                self._layouts[type_id] = _Layout(size, align, True)
        return self._layouts[type_id]


def _has_natural_offsets(members: list[Member], natural: list[tuple[int, int]]) -> bool:
    """Whether a C compiler puts the members of a struct where they are (System V ABI; bit fields do not cross their unit)."""
    at_bits = 0
    for member, (size, align) in zip(members, natural, strict=True):
        if member.bitfield_width:
            unit_bits = size * 8
            if at_bits % unit_bits + member.bitfield_width > unit_bits:
                at_bits = _round_up(at_bits, unit_bits)
        else:
            at_bits = _round_up(at_bits, align * 8)
        if at_bits != member.offset_bits:
            return False
        at_bits += member.bitfield_width or size * 8
    return True


def _natural_end(members: list[Member], natural: list[tuple[int, int]], align: int) -> int:
    """Size in bytes that a C compiler gives a struct or union with its members at their offsets."""
    ends = [m.offset_bits + (m.bitfield_width or size * 8) for m, (size, _) in zip(members, natural, strict=True)]
    return _round_up(max(ends, default=0), align * 8) // 8


def _round_up(value: int, unit: int) -> int:
    return (value + unit - 1) // unit * unit


def _gap(at_bits: int, to_bits: int, is_bitfield: bool, number: int) -> list[str]:
    """Padding members of a packed struct from one bit offset to another."""
    lines = []
    to_byte_bits = min(_round_up(at_bits, 8), to_bits)
    if to_byte_bits > at_bits and is_bitfield:
        lines.append(f"unsigned char : {to_byte_bits - at_bits}")
    at_bits = to_byte_bits
    if to_bits - at_bits >= 8:
        lines.append(f"char __gap{number}[{(to_bits - at_bits) // 8}]")
        at_bits += (to_bits - at_bits) // 8 * 8
    if to_bits > at_bits and is_bitfield:
        lines.append(f"unsigned char : {to_bits - at_bits}")
    return lines
