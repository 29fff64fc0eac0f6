# SPDX-License-Identifier: Apache-2.0
"""Builds BTF by hand, record by record. Layout: Documentation/bpf/btf.rst."""

import struct


class BtfBuilder:
    """Types get ids 1, 2, … in the order they are added; 0 is void."""

    def __init__(self) -> None:
        self._strings = bytearray(b"\0")
        self._types = bytearray()
        self._count = 0

    def add(self, kind: int, name: str = "", size_or_type: int = 0, members: int = 0, flag: int = 0) -> int:
        """A record's three words; the words of its members follow by `words`."""
        self._types += struct.pack("<III", self._string(name), flag << 31 | kind << 24 | members, size_or_type)
        self._count += 1
        return self._count

    def words(self, *words: int) -> None:
        self._types += struct.pack(f"<{len(words)}I", *words)

    def integer(self, name: str, size_bytes: int, encoding: int = 0) -> int:
        type_id = self.add(1, name, size_bytes)
        self.words(encoding << 24 | size_bytes * 8)
        return type_id

    def struct(self, name: str, size_bytes: int, *members: tuple[str, int, int], kind: int = 4) -> int:
        """Members are (name, type, offset in bits)."""
        type_id = self.add(kind, name, size_bytes, len(members))
        for member, member_type, offset_bits in members:
            self.words(self._string(member), member_type, offset_bits)
        return type_id

    def bitfields(self, name: str, size_bytes: int, *members: tuple[str, int, int, int]) -> int:
        """Members are (name, type, offset in bits, width in bits or 0)."""
        type_id = self.add(4, name, size_bytes, len(members), flag=1)
        for member, member_type, offset_bits, width in members:
            self.words(self._string(member), member_type, width << 24 | offset_bits)
        return type_id

    def enum(self, name: str, *values: tuple[str, int], is_signed: bool = False) -> int:
        type_id = self.add(6, name, 4, len(values), flag=int(is_signed))
        for value_name, value in values:
            self.words(self._string(value_name), value & 0xFFFFFFFF)
        return type_id

    def data(self) -> bytes:
        header_bytes = 24
        header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, header_bytes, 0, len(self._types), len(self._types), len(self._strings))
        return header + bytes(self._types) + bytes(self._strings)

    def _string(self, text: str) -> int:
        if not text:
            return 0
        at = len(self._strings)
        self._strings += text.encode() + b"\0"
        return at
