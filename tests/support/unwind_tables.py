# SPDX-License-Identifier: Apache-2.0
"""A packed unwind table of a binary, as agents offer it."""

import numpy as np

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1.unwind_table import identity_digest, pack_rows

TABLE_ID = pb.BinaryId(build_id_kind=pb.BUILD_ID_KIND_GNU, build_id=b"\x17" * 20, content_hash=bytes(16))


def packed_for(binary: pb.BinaryId, rows: int = 2) -> bytes:
    """A table with `rows` rows, the last of which ends it."""
    addresses = 0x1000 + 16 * np.arange(rows, dtype=np.uint64)
    rules = np.arange(rows, 0, -1, dtype=np.uint32) - np.uint32(1)
    return pack_rows(addresses, rules, identity_digest(binary.build_id_kind, binary.build_id, binary.content_hash))


PACKED = packed_for(TABLE_ID)
