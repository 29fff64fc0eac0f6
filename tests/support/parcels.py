# SPDX-License-Identifier: Apache-2.0
"""Builder of parcels whose content does not matter."""

from agent.records.window import Parcel
from tests.support.batches import EPOCH_UNIX_NS, START_UNIX_NS, WINDOW_NS


def parcel_of(
    sequence: int, *, samples: int = 7, others: tuple[int, ...] = (), payload: bytes = b"frames", epoch_unix_ns: int = EPOCH_UNIX_NS
) -> Parcel:
    """The parcel of the window with that number; windows follow each other from START_UNIX_NS. `others` are counts of the other kinds."""
    start = START_UNIX_NS + (sequence - 1) * WINDOW_NS
    return Parcel(epoch_unix_ns, sequence, 0, True, start, start + WINDOW_NS, payload, 99, 0x1234, (samples, *others))
