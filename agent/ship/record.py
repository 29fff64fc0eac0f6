# SPDX-License-Identifier: Apache-2.0
"""One spool record: a parcel with checksums over its header and its payload.

bytes  0..7   magic "EWSPOOL1"
       8..    header (_HEADER, little endian), ending with the CRC-32 of everything before it
       ..     payload, to the end of the file
"""

import re
import struct
import zlib
from typing import NamedTuple

from agent.records.window import Parcel

_MAGIC = b"EWSPOOL1"
_HEADER = struct.Struct("<8sQQIIqqQIQQI")
_HEADER_CRC = struct.Struct("<I")
_NAME = re.compile(r"([0-9]{1,20})-([0-9]{1,20})-([0-9]{1,12})-([0-9]{1,20}(?:_[0-9]{1,20})*)\.parcel")
HEADER_BYTES = _HEADER.size + _HEADER_CRC.size


class RecordError(ValueError):
    """A record that does not hold what its checksums promise."""


class RecordId(NamedTuple):
    """Name of a record: what must be known of it without opening the file. Later windows have greater ids."""

    epoch_unix_ns: int
    sequence: int
    end_unix_s: int
    counts: tuple[int, ...]
    """As in Parcel; only the name holds those after the first."""

    @property
    def file_name(self) -> str:
        """Zero-padded, so that names sort as ids do."""
        return f"{self.epoch_unix_ns:020d}-{self.sequence:012d}-{self.end_unix_s:012d}-{'_'.join(map(str, self.counts))}.parcel"

    def is_of(self, parcel: Parcel) -> bool:
        """A parcel that was read is this one, as far as it knows itself."""
        other = id_of_parcel(parcel)
        return (*self[:3], self.counts[0]) == (*other[:3], other.counts[0])


def id_of_parcel(parcel: Parcel) -> RecordId:
    """Name a parcel."""
    return RecordId(parcel.epoch_unix_ns, parcel.sequence, max(0, parcel.window_end_unix_ns // 10**9), parcel.counts)


def id_from_file_name(name: str) -> RecordId | None:
    """Read a name; None for a file that is not a record."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    epoch, sequence, end, counts = match.groups()
    return RecordId(int(epoch), int(sequence), int(end), tuple(map(int, counts.split("_"))))


def bytes_from_parcel(parcel: Parcel) -> bytes:
    """Lay out a record."""
    header = _HEADER.pack(
        _MAGIC,
        parcel.epoch_unix_ns,
        parcel.sequence,
        parcel.part,
        parcel.is_last_part,
        parcel.window_start_unix_ns,
        parcel.window_end_unix_ns,
        parcel.raw_size_bytes,
        parcel.raw_crc32,
        parcel.samples,
        len(parcel.payload),
        zlib.crc32(parcel.payload),
    )
    return header + _HEADER_CRC.pack(zlib.crc32(header)) + parcel.payload


def parcel_from_bytes(data: bytes) -> Parcel:
    """Read a record. Raises RecordError for any byte that is missing, too many or changed."""
    if len(data) < HEADER_BYTES:
        raise RecordError(f"{len(data)} bytes, where the header alone has {HEADER_BYTES}")
    magic, epoch, sequence, part, is_last, start, end, raw_size, raw_crc, samples, size, crc = _HEADER.unpack_from(data)
    if magic != _MAGIC:
        raise RecordError("not a record of this version")
    if _HEADER_CRC.unpack_from(data, _HEADER.size)[0] != zlib.crc32(data[: _HEADER.size]):
        raise RecordError("the header's checksum is wrong")
    payload = data[HEADER_BYTES:]
    if len(payload) != size or zlib.crc32(payload) != crc:
        raise RecordError("the payload's size or checksum is wrong")
    return Parcel(epoch, sequence, part, bool(is_last), start, end, payload, raw_size, raw_crc, (samples,))
