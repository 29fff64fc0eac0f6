# SPDX-License-Identifier: Apache-2.0
"""Batches from outside: every limit at, below and above; every index out of its table; hostile and foreign bytes."""

import contextlib
import zlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2 as collector
from emberwatch.v1 import columns, packing
from server.errors import BadRequest, LimitExceeded, ServerError
from server.ingest.decode import decode_push
from server.ingest.limits import IngestLimits
from server.store.push import DecodedPush
from tests.support.batches import START_UNIX_NS, WINDOW_NS, batch_of, push_of

NOW = START_UNIX_NS + WINDOW_NS
ROWS = [("web", "worker", ["app+0x10", "app+0x20"], 7), ("web", "other", ["_text+0x8", "ext4.ko+0x8", "jit:f", "[truncated]"], 23)]
Change = Callable[[pb.FoldedBatch], object]


def decode(batch: pb.FoldedBatch, limits: IngestLimits | None = None) -> DecodedPush:
    return decode_push(push_of(batch), NOW, limits or IngestLimits())


def changed(change: Change) -> pb.FoldedBatch:
    batch = batch_of(ROWS)
    change(batch)
    return batch


def column(*values: int) -> pb.Column:
    return columns.encode_column(np.array(values, np.uint64))


def set_column(batch: pb.FoldedBatch, path: str, *values: int) -> None:
    """Replace the column at a dotted path, for example "series.0.new_keys.stacks"."""
    place: object = batch
    for step in path.split("."):
        place = place[int(step)] if step.isdigit() else getattr(place, step)  # type: ignore[index]
    assert isinstance(place, pb.Column)
    place.CopyFrom(column(*values))


def test_push_becomes_columns() -> None:
    push = decode(batch_of(ROWS))
    (series,) = push.series
    assert (series.service, series.kind, dict(series.labels), push.host.host) == ("web", "cpu", {"service": "web"}, "web-1")
    assert [one.values.tolist() if one.values is not None else one.times_first for one in series.columns] == [[7, 23], 10_101_010, 1]
    assert push.stacks.parents.tolist() == [0, 0, 1, 0, 3, 4, 5]
    assert push.frames.kinds.tolist() == [0, 1, 1, 6, 4, 3, 2]
    assert push.accounts[0].stored == 30
    assert (push.envelope.start_unix_ns, push.envelope.is_time_suspect) == (START_UNIX_NS, False)


WRONG: list[tuple[str, Change, str]] = [
    ("layout", lambda b: setattr(b, "version", 3), "layout 3; this server reads"),
    ("string 0", lambda b: b.strings.CopyFrom(columns.encode_strings([b"x", b"y"])), "entry 0 of the strings"),
    ("sizes and blob", lambda b: setattr(b.strings, "blob", b"short"), "malformed"),
    ("frame 0", lambda b: set_column(b, "frames.kinds", 1, 1, 1, 6, 4, 3, 2), "entry 0 of the frames"),
    ("frame lengths", lambda b: set_column(b, "frames.refs", 0, 1), "2 entries where 7 belong"),
    ("frame kind", lambda b: set_column(b, "frames.kinds", 0, 1, 1, 6, 4, 3, 9), "kind 9, which this server does not know"),
    ("binary out", lambda b: set_column(b, "frames.refs", 0, 1, 77, 0, 3, 2, 3), "77 points outside"),
    ("string out", lambda b: set_column(b, "frames.refs", 0, 1, 1, 0, 99, 2, 3), "99 points outside"),
    ("binary kind", lambda b: set_column(b, "frames.refs", 0, 2, 1, 0, 3, 2, 3), "in a binary of another kind"),
    ("mark", lambda b: set_column(b, "frames.offsets", 0, 0x20, 0x10, 0, 0, 8, 8), "mark without a number"),
    ("is_return", lambda b: set_column(b, "frames.is_return", 0, 1, 0, 0, 2, 1, 0), "is_return"),
    ("node 0", lambda b: set_column(b, "stacks.frames", 1, 1, 2, 3, 4, 5, 6), "entry 0 of the stacks"),
    ("own parent", lambda b: set_column(b, "stacks.parent_distances", 0, 1, 0, 3, 1, 1, 1), "behind its parent"),
    ("parent before 0", lambda b: set_column(b, "stacks.parent_distances", 0, 1, 3, 3, 1, 1, 1), "behind its parent"),
    ("frame out", lambda b: set_column(b, "stacks.frames", 0, 1, 2, 3, 4, 5, 7), "7 points outside"),
    ("empty frame", lambda b: set_column(b, "stacks.frames", 0, 1, 0, 3, 4, 5, 6), "has no frame"),
    ("stack out", lambda b: set_column(b, "series.0.new_keys.stacks", 2, 7), "7 points outside"),
    ("second out", lambda b: set_column(b, "series.0.new_keys.seconds", 0, 2**40), "points outside"),
    ("thread out", lambda b: set_column(b, "series.0.new_keys.threads", 1, 55), "55 points outside"),
    ("key lengths", lambda b: set_column(b, "series.0.new_keys.threads", 1), "1 entries where 2 belong"),
    ("value count", lambda b: set_column(b, "series.0.columns.0.values", 7, 23, 5), "3 entries where 2 belong"),
    ("large value", lambda b: set_column(b, "series.0.columns.0.values", 7, 2**62), "cannot be"),
    ("large product", lambda b: setattr(b.series[0].columns[1], "times_first", 2**60), "cannot be"),
    ("first of all", lambda b: setattr(b.series[0].columns[0], "times_first", 5), "a first column that is not there"),
    ("column twice", lambda b: setattr(b.series[0].columns[1], "name", "samples"), "column samples is there twice"),
    ("no columns", lambda b: b.series[0].ClearField("columns"), "no columns"),
    ("merge", lambda b: setattr(b.series[0].columns[0], "merge", 0), "merges by 0"),
    ("known twice", lambda b: set_column(b, "series.0.known_keys", 5, 5), "do not ascend"),
    ("known falling", lambda b: set_column(b, "series.0.known_keys", 5, 4), "do not ascend"),
    ("kind name", lambda b: setattr(b.series[0], "kind", "CPU;"), "does not consist of"),
    ("label name", lambda b: b.series[0].labels.add(name="a b", value=b"x"), "does not consist of"),
    ("label twice", lambda b: b.series[0].labels.add(name="service", value=b"x"), "there twice"),
    ("host label", lambda b: b.series[0].labels.add(name="host", value=b"x"), "given by the server"),
    ("no service", lambda b: b.series[0].ClearField("labels"), "for its service"),
    ("overflow", lambda b: setattr(b.series[0].labels[0], "value", b"__overflow__"), "for its service"),
    ("no host", lambda b: setattr(b.host, "host", b""), "name of the host"),
    ("build id", lambda b: setattr(b.binaries[1].id, "build_id", b"abc"), "build id of 3 bytes"),
    ("binary kind 0", lambda b: setattr(b.binaries[1], "kind", 0), "a binary has kind 0"),
    ("account kind", lambda b: setattr(b.accounts[0], "kind", ""), "does not consist of"),
    ("account count", lambda b: setattr(b.accounts[0], "expected", 2**60), "cannot be"),
]


@pytest.mark.parametrize(("change", "words"), [wrong[1:] for wrong in WRONG], ids=[wrong[0] for wrong in WRONG])
def test_nonsense_is_refused_in_words(change: Change, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        decode(changed(change))


def deep(frames: int) -> pb.FoldedBatch:
    return batch_of([("web", "t", [f"app+{n:#x}" for n in range(1, frames + 1)], 7)])


def labels(count: int) -> pb.FoldedBatch:
    """`service` and count - 1 more."""
    return changed(lambda b: b.series[0].labels.extend([pb.Label(name=f"l{n}", value=b"") for n in range(count - 1)]))


def many(field: str, count: int) -> pb.FoldedBatch:
    def grow(batch: pb.FoldedBatch) -> None:
        items = getattr(batch, field)
        items.extend([items[-1]] * (count - len(items)))

    return changed(grow)


LIMITS: list[tuple[str, IngestLimits, Callable[[int], pb.FoldedBatch], int]] = [
    ("stack_frames", IngestLimits(), deep, 256),
    ("stack_frames odd", replace(IngestLimits(), stack_frames=5), deep, 5),
    ("rows", replace(IngestLimits(), rows=5), lambda n: batch_of([("web", f"t{i}", ["app+0x1"], 1) for i in range(n)]), 5),
    ("table_entries", replace(IngestLimits(), table_entries=9), deep, 8),
    ("series", replace(IngestLimits(), series=7), lambda n: many("series", n), 7),
    ("binaries", replace(IngestLimits(), binaries=23), lambda n: many("binaries", n), 23),
    ("accounts", IngestLimits(), lambda n: many("accounts", n), 64),
    ("labels", IngestLimits(), labels, 32),
    ("label name", IngestLimits(), lambda n: changed(lambda b: b.series[0].labels.add(name="l" * n, value=b"")), 64),
    ("label value", IngestLimits(), lambda n: changed(lambda b: setattr(b.series[0].labels[0], "value", b"v" * n)), 256),
    ("name", IngestLimits(), lambda n: batch_of([("web", "t" * n, ["app+0x1"], 1)]), 4096),
    ("path", IngestLimits(), lambda n: changed(lambda b: setattr(b.binaries[1], "path", b"/" * n)), 4096),
]


@pytest.mark.parametrize(("limits", "build", "most"), [row[1:] for row in LIMITS], ids=[row[0] for row in LIMITS])
def test_limit_at_below_and_above(limits: IngestLimits, build: Callable[[int], pb.FoldedBatch], most: int) -> None:
    decode(build(most - 1), limits)
    decode(build(most), limits)
    with pytest.raises(LimitExceeded):
        decode(build(most + 1), limits)


def test_payload_at_below_and_above_the_limit() -> None:
    request = push_of(batch_of(ROWS))
    for most in (len(request.payload) + 1, len(request.payload)):
        decode_push(request, NOW, replace(IngestLimits(), payload_bytes=most))
    with pytest.raises(LimitExceeded, match=f"the limit is {len(request.payload) - 1}"):
        decode_push(request, NOW, replace(IngestLimits(), payload_bytes=len(request.payload) - 1))


def test_chain_of_a_million_nodes_is_refused() -> None:
    batch = batch_of(ROWS)
    ones, frames = np.ones(1_000_000, np.uint64), np.ones(1_000_000, np.uint64)
    ones[0] = frames[0] = 0
    batch.stacks.parent_distances.CopyFrom(columns.encode_column(ones))
    batch.stacks.frames.CopyFrom(columns.encode_column(frames))
    with pytest.raises(LimitExceeded, match="the limit is 256"):
        decode(batch)


def test_odd_bytes_pass_unharmed_in_names_and_readable_in_labels() -> None:
    odd = b"</script>\xff;\n\0"
    batch = changed(lambda b: setattr(b.series[0].labels[0], "value", odd))
    batch.strings.CopyFrom(columns.encode_strings([b"", odd, b"other", b"f"]))
    push = decode(batch)
    assert push.strings[1] == odd
    assert push.series[0].service == "</script>\\xff;\n\\x00"


def raw_push(raw: bytes) -> collector.PushRequest:
    request = push_of(batch_of([]))
    request.payload, request.raw_size_bytes = zstandard.ZstdCompressor().compress(raw), len(raw)
    request.raw_crc32 = zlib.crc32(raw)
    return request


@pytest.mark.parametrize(
    "raw",
    [
        b"\xff" * 40,
        batch_of(ROWS).SerializeToString()[:-5],
        b"\x3a\x05\x12\x03\xff\xfe\xfd",  # series 7: kind (a string) is not UTF-8
        b"\x0b" * 120 + b"\x0c" * 120,  # 120 nested groups
    ],
)
def test_bytes_that_are_no_batch_are_refused(raw: bytes) -> None:
    with pytest.raises(BadRequest, match="not a FoldedBatch"):
        decode_push(raw_push(raw), NOW, IngestLimits())


def test_fields_of_the_future_are_passed_over() -> None:
    raw = batch_of(ROWS).SerializeToString() + b"\xfa\x3e\x03new"  # field 1007, 3 bytes
    assert decode_push(raw_push(raw), NOW, IngestLimits()).series[0].service == "web"


@pytest.mark.parametrize(("name", "value"), [("agent_id", b"short"), ("sequence", 0), ("sequence", 2**63), ("epoch_unix_ns", 2**63)])
def test_envelope_that_makes_no_sense_is_refused(name: str, value: bytes | int) -> None:
    request = push_of(batch_of(ROWS))
    setattr(request, name, value)
    with pytest.raises(BadRequest):
        decode_push(request, NOW, IngestLimits())


def test_loss_reasons_fit_where_accounts_are_rolled_up() -> None:
    """One of 17 bits spilled into the number of the agent: another host's loss."""
    batch = batch_of(ROWS, losses={1: 7})
    batch.accounts[0].losses[0].reason = 0xFFFF  # type: ignore[assignment]  # a number that a newer agent knows
    assert decode_push(raw_push(batch.SerializeToString()), NOW, IngestLimits()).accounts[0].losses == {0xFFFF: 7}
    batch.accounts[0].losses[0].reason = 0x10000  # type: ignore[assignment]
    with pytest.raises(BadRequest, match="reason 65536, which cannot be"):
        decode_push(raw_push(batch.SerializeToString()), NOW, IngestLimits())


@pytest.mark.parametrize("is_packed", [False, True])
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_flipped_bytes_in_a_batch_never_raise_anything_else(data: st.DataObject, is_packed: bool) -> None:
    batch = batch_of(ROWS)
    assert not is_packed or packing.pack(batch)
    raw = bytearray(batch.SerializeToString())
    for _ in range(data.draw(st.integers(1, 4))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ServerError):
        decode_push(raw_push(bytes(raw)), NOW, IngestLimits())
