# SPDX-License-Identifier: Apache-2.0
"""A window on its way: encoded, numbered, ready for the spool."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parcel:
    """One part of one window, holding all its frames. The fields are those of emberwatch.v1.PushRequest."""

    epoch_unix_ns: int
    sequence: int
    part: int
    is_last_part: bool
    window_start_unix_ns: int
    window_end_unix_ns: int
    payload: bytes
    """zstd frame of a serialised FoldedBatch without known keys."""
    raw_size_bytes: int
    raw_crc32: int
