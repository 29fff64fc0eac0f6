# SPDX-License-Identifier: Apache-2.0
"""Layout 2 says the same as layout 1, and hostile tables of it are refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.records.folded import folded_from_message, message_from_folded, pruned
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import packing
from emberwatch.v1.columns import ColumnError, decode_column, encode_column
from tests.support.batches import Row, batch_of
from tests.support.drains import rows_of_batch

ROWS: list[Row] = [
    ("web", "main", ["app+0x3", "app+0x2", "app+0x1"], 7),
    ("web", "main", ["app+0x4", "app+0x2", "app+0x1"], 23),
    ("web", "worker", ["app+0x4", "app+0x2", "app+0x1"], 2),
    ("db", "main", ["app+0x2", "app+0x1"], 5),
    ("db", "main", ["[exited]"], 3),
]
SORTED = sorted(ROWS, key=lambda row: row[2][::-1])


def _copy(batch: pb.FoldedBatch) -> pb.FoldedBatch:
    return pb.FoldedBatch.FromString(batch.SerializeToString())


def test_packed_batch_comes_back_as_it_was() -> None:
    batch = batch_of(SORTED)
    packed = _copy(batch)
    assert packing.pack(packed)
    assert packed.version == 2
    assert not packed.stacks.frames.data
    packing.unpack(packed, 1000)
    assert rows_of_batch(packed) == rows_of_batch(batch)
    assert (packed.version, packed.stacks) == (1, batch.stacks)


def test_layout_of_a_small_tree_is_as_the_proto_says() -> None:
    packed = batch_of([("web", "t", ["app+0x3", "app+0x2", "app+0x1"], 1), ("web", "t", ["app+0x4", "app+0x2", "app+0x1"], 1)])
    assert packing.pack(packed)
    # Frames by number: 1 and 2 are the callers 0x1 and 0x2, 3 and 4 the leaves. Stack 1 is 1 2 3; stack 2 climbs one and adds 4.
    tables = {field.name: decode_column(value, 99).tolist() for field, value in packed.stacks.ListFields()}
    assert tables == {
        "climbs": [0, 0, 1],
        "lengths": [0, 3, 1],
        "child_counts": [1, 1, 2, 0, 0],
        "first_children": [1, 2, 3],
        "next_children": [2],
        "first_choices": [0, 0, 1],
        "next_choices": [0, 0],
    }
    assert decode_column(packed.series[0].new_keys.stacks, 99).tolist() == [1, 2]


def test_nodes_out_of_order_are_left_plain() -> None:
    first, second = ["app+0x3", "app+0x1"], ["app+0x4", "app+0x2"]
    batch = batch_of([("web", "t", first, 1), ("web", "t", second, 1), ("web", "t", ["app+0x5", "app+0x1"], 1)])
    before = _copy(batch)
    assert not packing.pack(batch)
    assert batch == before


def test_empty_batch_packs() -> None:
    batch = batch_of([])
    assert packing.pack(batch)
    packing.unpack(batch, 10)
    assert rows_of_batch(batch) == {}


frames = st.sampled_from(["app+0x1", "app+0x2", "lib+0x1", "[exited]", "jit:f"])
stacks = st.lists(frames, min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["t", "u"]), stacks), unique_by=str, max_size=12))
def test_any_sorted_batch_survives(rows: list[tuple[str, str, list[str]]]) -> None:
    batch = batch_of([(*row, 1) for row in sorted(rows, key=lambda row: row[2][::-1])])
    packed = pb.FoldedBatch.FromString(message_from_folded(pruned(folded_from_message(batch))).SerializeToString())
    assert packing.pack(packed)
    packing.unpack(packed, 1000)
    assert rows_of_batch(packed) == rows_of_batch(batch)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("climbs", [0, 0, 9]),
        ("climbs", [1, 0, 1]),
        ("climbs", [0, 0]),
        ("lengths", [0, 3, 0]),
        ("lengths", [0, 3, 1 << 62]),
        ("child_counts", [1, 1, 3, 0, 0]),
        ("child_counts", [1, 1, 1 << 63, 0, 0]),
        ("child_counts", [(1 << 64) - 1, 1, 4, 0, 0]),
        ("child_counts", []),
        ("first_children", [1, 2]),
        ("first_children", [1, 2, 0]),
        ("first_children", [1, 2, 9]),
        ("first_children", [1, 2, (1 << 63) + 3]),
        ("next_children", [4]),
        ("next_children", [7]),
        ("next_children", [1 << 63]),
        ("next_children", [2, 2]),
        ("first_choices", [0, 0, 2]),
        ("first_choices", [0, 0, 1 << 63]),
        ("next_choices", [0]),
    ],
)
def test_hostile_tables_are_refused(field: str, values: list[int]) -> None:
    packed = batch_of([("web", "t", ["app+0x3", "app+0x2", "app+0x1"], 1), ("web", "t", ["app+0x4", "app+0x2", "app+0x1"], 1)])
    assert packing.pack(packed)
    getattr(packed.stacks, field).CopyFrom(encode_column(values))
    with pytest.raises(ColumnError):
        packing.unpack(packed, 1000)


def test_key_of_a_stack_that_is_not_there_is_refused() -> None:
    packed = batch_of(SORTED)
    packing.pack(packed)
    packed.series[0].new_keys.stacks.CopyFrom(encode_column([99, 1, 1]))
    with pytest.raises(ColumnError, match="99"):
        packing.unpack(packed, 1000)


def test_more_nodes_than_allowed_are_refused_before_they_are_made() -> None:
    packed = batch_of(SORTED)
    packing.pack(packed)
    packed.stacks.lengths.CopyFrom(encode_column([0, *[1 << 40] * (len(packed.stacks.lengths.data) - 1)]))
    with pytest.raises(ColumnError, match="more than 1000"):
        packing.unpack(packed, 1000)


def test_frames_that_call_are_no_more_than_frames_there_are() -> None:
    """Zeros are sent for nothing: a message of 2 KB that said 60 million frames without children cost 1 GB."""
    packed = batch_of(SORTED)
    packing.pack(packed)
    frames = len(packed.frames.kinds.data)
    counts = [*packed.stacks.child_counts.data, *[0] * 1000]
    packed.stacks.child_counts.CopyFrom(encode_column(counts[:frames]))
    packing.unpack(type(packed).FromString(packed.SerializeToString()), 1000)
    packed.stacks.child_counts.CopyFrom(encode_column(counts[: frames + 1]))
    with pytest.raises(ColumnError, match=f"column of {frames + 1} elements where at most {frames} are allowed"):
        packing.unpack(packed, 1000)
