# SPDX-License-Identifier: Apache-2.0
"""Unwind tables as bytes: what the decoding child answers, the disk cache holds and the fleet shares (emberwatch/v1/unwind_table.py)."""

from agent.records.binary import BinaryId
from agent.records.unwind import TableMiss, UnwindTable
from emberwatch.v1 import unwind_table as wire
from emberwatch.v1.unwind_table import DIGEST_BYTES, HEAD_BYTES, MAX_PACKED_BYTES
from emberwatch.v1.unwind_table import UnwindTableError as TableError

__all__ = [
    "DIGEST_BYTES",
    "HEAD_BYTES",
    "MAX_PACKED_BYTES",
    "TableError",
    "identity_digest",
    "pack_miss",
    "pack_table",
    "reason_of",
    "unpack_table",
]


def identity_digest(binary_id: BinaryId) -> bytes:
    """What stands for a binary in files and their names."""
    return wire.identity_digest(binary_id.build_id_kind, binary_id.build_id, binary_id.content_hash)


def pack_table(table: UnwindTable, digest: bytes) -> bytes:
    """The bytes of a table. Raises TableError when it is larger than any that is taken back."""
    return wire.pack_rows(table.addresses, table.rules, digest)


def pack_miss(miss: TableMiss, digest: bytes) -> bytes:
    """The bytes that say that there is no table, and why."""
    return wire.pack_reason(miss, digest)


def unpack_table(data: bytes, digest: bytes) -> UnwindTable | TableMiss:
    """Read what pack_table or pack_miss wrote for this binary; raises TableError for anything else."""
    found = wire.unpack(data, digest)
    if isinstance(found, tuple):
        return UnwindTable(*found)
    try:
        return TableMiss(found)
    except ValueError:
        raise TableError(f"unknown reason {found}") from None


def reason_of(head: bytes) -> TableMiss | None:
    """Why there is no table, from the first HEAD_BYTES of a file; None when there is one. Raises TableError when it is no such file."""
    try:
        return TableMiss(reason) if (reason := wire.reason_of(head)) else None
    except ValueError:
        raise TableError("unknown reason") from None
