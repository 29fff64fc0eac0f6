# SPDX-License-Identifier: Apache-2.0
"""What holds for the maps of all programs."""

from pathlib import Path

BPF = Path(__file__).resolve().parents[2] / "bpf"


def test_no_map_throws_away_what_it_holds() -> None:
    """An LRU map evicts in batches, long before it is full: sums in it are less than what was counted, and nobody knows by how much."""
    sources = [*BPF.glob("*.bpf.c"), *BPF.glob("shared/*.h")]
    assert len(sources) > 10
    assert [path.name for path in sources if "lru" in path.read_text().lower()] == []
