# SPDX-License-Identifier: Apache-2.0
"""What holds for the maps of all programs."""

import re
from pathlib import Path

BPF = Path(__file__).resolve().parents[2] / "bpf"


def test_no_map_throws_away_what_it_holds() -> None:
    """An LRU map evicts in batches, long before it is full (A18): sums in it are less than what was counted, and nobody knows by how
    much."""
    sources = [*BPF.glob("*.bpf.c"), *BPF.glob("shared/*.h")]
    assert len(sources) > 10
    assert [path.name for path in sources if "lru" in path.read_text().lower()] == []


def test_shapes_of_inner_maps_have_no_struct_as_value() -> None:
    """Up to 6.2 a map of maps takes none that was made without BTF where the shape's BTF says struct: see stack_words in stack.h."""
    shapes = [found for path in sorted(BPF.rglob("*.[ch]")) for found in re.findall(r"_shape, struct \w+, ([^,]+), 1\)", path.read_text())]
    assert len(shapes) > 5
    assert [value for value in shapes if value.startswith("struct")] == []
