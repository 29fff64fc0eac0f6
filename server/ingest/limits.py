# SPDX-License-Identifier: Apache-2.0
"""How large a push may be. Each limit is tested at, below and above."""

from dataclasses import dataclass

HOUR_NS = 3600 * 10**9


@dataclass(frozen=True, slots=True)
class IngestLimits:
    """What is above one of these is refused, with the limit named."""

    payload_bytes: int = 16 << 20
    """Of a payload as it is sent; gRPC's own limit on messages has to be a little above."""
    raw_bytes: int = 64 << 20
    """Of its payload, inflated."""
    rows: int = 1 << 20
    """Of all series together."""
    table_entries: int = 1 << 22
    """Of each table: strings, frames, nodes."""
    binaries: int = 1 << 16
    segments: int = 64
    """Of one binary."""
    series: int = 4096
    columns: int = 128
    """Of one series: tcp has two histograms of 32 columns beside its counts."""
    stack_frames: int = 256
    """127 of user and kernel each, and a mark at the end of each."""
    name_bytes: int = 4096
    """Of each string, path and fact."""
    labels: int = 32
    label_name_bytes: int = 64
    label_value_bytes: int = 256
    accounts: int = 64
    flags: int = 64
    past_ns: int = 48 * HOUR_NS
    future_ns: int = 600 * 10**9
    """How far the start of a window may lie from the server's clock."""
    window_ns: int = HOUR_NS
    """A window that says it was longer, or ended before it began, has no sensible time."""
