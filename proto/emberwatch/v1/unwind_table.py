# SPDX-License-Identifier: Apache-2.0
"""Unwind tables as bytes (UnwindTable.packed in symbols.proto): what agents give one another through the server, and keep on disk.

Whoever reads them takes them for hostile.

header, 48 bytes LE    magic "EWUT", version u16, reason u16 (why there is no table; 0 = there is one), rows u32, rules u32, body size u32,
                       zero u32, digest of the binary's identity (16 bytes), the first 8 bytes of a BLAKE2b over all else
body, zstd             first address u64; rules u32[rules]; for each row but the first its distance from the row before, for each row
                       the index of its rule: u32 and u16, as byte planes (all lowest bytes first)
"""

import hashlib
import struct

import numpy as np
import numpy.typing as npt
import zstandard

VERSION = 2
"""Of the layout and of what the decoder makes of a file: tables of another version are made anew."""
MAX_ROWS = 1 << 22
MAX_RULES = 1 << 16
MAX_PACKED_BYTES = 15 << 20
MAX_ADDRESS = 1 << 47
DIGEST_BYTES = 16
_MAGIC = b"EWUT"
_HEADER = struct.Struct("<4sHHIIII16s8s")
_CHECK_BYTES = 8
HEAD_BYTES = _HEADER.size
_ADDRESS_BYTES, _DELTA_BYTES, _INDEX_BYTES, _RULE_BYTES = 8, 4, 2, 4
_LEVEL = 3


_NO_RULE = 0
"""The rule of a hole: the last row of every table."""

Addresses = npt.NDArray[np.uint64]
Rules = npt.NDArray[np.uint32]


class UnwindTableError(Exception):
    """The bytes are no table of this version for this binary."""


def identity_digest(build_id_kind: int, build_id: bytes, content_hash: bytes) -> bytes:
    """What stands for a binary in tables and in the names of their files; the parts are those of BinaryId in batch.proto."""
    head = struct.pack("<II", build_id_kind, len(build_id))
    return hashlib.blake2b(head + build_id + content_hash, digest_size=DIGEST_BYTES).digest()


def pack_rows(addresses: Addresses, rules: Rules, digest: bytes) -> bytes:
    """The bytes of a table of rows with ascending addresses. Raises UnwindTableError when it is larger than any that is taken back."""
    distinct, index = np.unique(rules, return_inverse=True)
    distances = np.diff(addresses)
    if not len(rules) or len(rules) > MAX_ROWS or len(distinct) > MAX_RULES or (distances >> np.uint64(32)).any():
        raise UnwindTableError(f"{len(rules)} rows, {len(distinct)} rules")
    raw = struct.pack("<Q", int(addresses[0])) + distinct.astype("<u4").tobytes()
    raw += _planes(distances.astype("<u4")) + _planes(index.astype("<u2"))
    return _seal(0, len(rules), len(distinct), zstandard.ZstdCompressor(level=_LEVEL).compress(raw), digest)


def pack_reason(reason: int, digest: bytes) -> bytes:
    """The bytes that say that there is no table, and why; `reason` is not 0."""
    return _seal(reason, 0, 0, b"", digest)


def unpack(data: bytes, digest: bytes) -> tuple[Addresses, Rules] | int:
    """Read what pack_rows or pack_reason wrote for this binary; raises UnwindTableError for anything else."""
    if len(data) < _HEADER.size or len(data) > MAX_PACKED_BYTES:
        raise UnwindTableError(f"{len(data)} bytes")
    magic, version, reason, rows, rules, body_bytes, zero, of, check = _HEADER.unpack_from(data)
    if (magic, version, zero) != (_MAGIC, VERSION, 0):
        raise UnwindTableError(f"magic {magic!r}, version {version}")
    if of != digest:
        raise UnwindTableError("the table of another binary")
    if body_bytes != len(data) - _HEADER.size or check != _check(data[: _HEADER.size - _CHECK_BYTES], data[_HEADER.size :]):
        raise UnwindTableError("damaged")
    if reason:
        return int(reason)
    if not 0 < rows <= MAX_ROWS or not 0 < rules <= MAX_RULES:
        raise UnwindTableError(f"{rows} rows, {rules} rules")
    return _rows(_inflate(data[_HEADER.size :], rows, rules), rows, rules)


def reason_of(head: bytes) -> int:
    """Why there is no table, or 0, from the first HEAD_BYTES; nothing else is checked. Raises UnwindTableError for another version."""
    if len(head) < HEAD_BYTES:
        raise UnwindTableError(f"{len(head)} bytes")
    magic, version, reason, *_ = _HEADER.unpack_from(head)
    if (magic, version) != (_MAGIC, VERSION):
        raise UnwindTableError(f"magic {magic!r}, version {version}")
    return int(reason)


def _seal(reason: int, rows: int, rules: int, body: bytes, digest: bytes) -> bytes:
    head = _HEADER.pack(_MAGIC, VERSION, reason, rows, rules, len(body), 0, digest, bytes(_CHECK_BYTES))[:-_CHECK_BYTES]
    if len(body) + _HEADER.size > MAX_PACKED_BYTES:
        raise UnwindTableError(f"{len(body)} bytes packed")
    return head + _check(head, body) + body


def _check(head: bytes, body: bytes) -> bytes:
    return hashlib.blake2b(head + body, digest_size=_CHECK_BYTES).digest()


def _inflate(body: bytes, rows: int, rules: int) -> bytes:
    size = _ADDRESS_BYTES + _RULE_BYTES * rules + _DELTA_BYTES * (rows - 1) + _INDEX_BYTES * rows
    try:
        if zstandard.frame_content_size(body) != size:
            raise UnwindTableError("the size inside is another than its rows need")
        raw = zstandard.ZstdDecompressor().decompress(body, max_output_size=size)
    except zstandard.ZstdError as error:
        raise UnwindTableError(f"cannot be inflated: {error}") from error
    if len(raw) != size:
        raise UnwindTableError("the size inside is another than its rows need")
    return raw


def _rows(raw: bytes, rows: int, rules: int) -> tuple[Addresses, Rules]:
    first = struct.unpack_from("<Q", raw)[0]
    at = _ADDRESS_BYTES
    known = np.frombuffer(raw, "<u4", rules, at)
    at += _RULE_BYTES * rules
    inside = memoryview(raw)
    distances = _unplanes(inside[at : at + _DELTA_BYTES * (rows - 1)], "<u4")
    index = _unplanes(inside[at + _DELTA_BYTES * (rows - 1) :], "<u2")
    if first >= MAX_ADDRESS or int(index.max()) >= rules or not distances.all():
        raise UnwindTableError("addresses do not ascend, or a rule is missing")
    addresses = np.full(rows, first, np.uint64)
    addresses[1:] += np.cumsum(distances, dtype=np.uint64)
    found = known[index].astype(np.uint32)
    if int(addresses[-1]) >= MAX_ADDRESS or found[-1] != _NO_RULE:
        raise UnwindTableError("the last row does not end the table")
    return addresses, found


def _planes(values: npt.NDArray[np.uint32] | npt.NDArray[np.uint16]) -> bytes:
    return values.view(np.uint8).reshape(-1, values.itemsize).T.tobytes()


def _unplanes(raw: memoryview, kind: str) -> npt.NDArray[np.uint32] | npt.NDArray[np.uint16]:
    planes = np.frombuffer(raw, np.uint8).reshape(np.dtype(kind).itemsize, -1)
    return np.ascontiguousarray(planes.T).view(kind).reshape(-1)
