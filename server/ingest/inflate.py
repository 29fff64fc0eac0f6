# SPDX-License-Identifier: Apache-2.0
"""Inflates the payload of a push: streamed and counted, one zstd frame with nothing after it, size and checksum compared.

zstandard's one-shot call believes the size in the frame's header (16 KB can ask for 512 MiB), a stream that was cut ends like one that
was not, and what follows the first frame is left out in silence: none of these may pass here.
"""

import zlib

import zstandard

from server.errors import BadRequest, LimitExceeded

MAX_WINDOW_BYTES = 1 << 27
_MOST_BLOCKS = 1 << 16
_CHECKSUM_FLAG = 0x04
_RAW, _RLE, _RESERVED = 0, 1, 3


def inflate(payload: bytes, raw_size_bytes: int, raw_crc32: int, most_bytes: int) -> bytes:
    """The bytes inside. Raises BadRequest for anything but what the envelope promises, LimitExceeded when that is too much."""
    if raw_size_bytes > most_bytes:
        raise LimitExceeded(f"the payload says it holds {raw_size_bytes} bytes; the limit is {most_bytes}")
    _check_one_frame(payload)
    raw = bytearray(raw_size_bytes + 1)
    filled = 0
    try:
        with zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_BYTES).stream_reader(payload) as reader:
            view = memoryview(raw)
            while filled < len(raw):
                read = reader.readinto(view[filled:])
                if not read:
                    break
                filled += read
            view.release()
    except (zstandard.ZstdError, MemoryError) as error:
        raise BadRequest(f"the payload is not a zstd frame that can be read: {error}") from error
    if filled != raw_size_bytes:
        found = f"only {filled}" if filled < raw_size_bytes else "more"
        raise BadRequest(f"the payload says it holds {raw_size_bytes} bytes and holds {found}")
    del raw[filled:]
    if zlib.crc32(raw) != raw_crc32:
        raise BadRequest("the payload's checksum does not match: it was damaged on its way")
    return bytes(raw)


def _check_one_frame(payload: bytes) -> None:
    """Walk the blocks of the frame (RFC 8878, 3.1.1) to where it ends: exactly at the end of the payload."""
    try:
        position = zstandard.frame_header_size(payload)
        has_checksum = payload[4] & _CHECKSUM_FLAG != 0
    except (zstandard.ZstdError, IndexError) as error:
        raise BadRequest(f"the payload is not a zstd frame: {error}") from error
    if payload[:4] != zstandard.FRAME_HEADER:
        raise BadRequest("the payload is not a zstd frame")
    for _ in range(_MOST_BLOCKS):
        header = int.from_bytes(payload[position : position + 3], "little")
        is_last, kind, size = header & 1, header >> 1 & 3, header >> 3
        position += 3 + (1 if kind == _RLE else size)
        if position > len(payload) or kind == _RESERVED:
            raise BadRequest("the payload's zstd frame is cut off or damaged")
        if is_last:
            break
    else:
        raise BadRequest(f"the payload's zstd frame has more than {_MOST_BLOCKS} blocks")
    end = position + (4 if has_checksum else 0)
    if end != len(payload):
        raise BadRequest("the payload's zstd frame is cut off" if end > len(payload) else "something follows the zstd frame in the payload")
