# SPDX-License-Identifier: Apache-2.0
"""The whole way from a drain to a batch, read back row by row."""

from agent.collect.window import WindowBuilder
from emberwatch.v1 import batch_pb2 as pb
from tests.support.drains import (
    NO_LAYOUT,
    DrainOf,
    assert_balanced,
    elf,
    facts,
    kernel_binary,
    layout,
    mapped,
    process,
    rows_of_batch,
)

APP = elf("app")
LIBC = elf("libc")
TEXT = 0xFFFF_FFFF_8100_0000


def _build(drain: DrainOf, *processes, kernel=NO_LAYOUT, builder: WindowBuilder | None = None, **account) -> pb.FoldedBatch:
    by_key = {one.key: one for one in processes}
    batch = (builder or WindowBuilder()).build(drain.drain(**account), by_key.__getitem__, kernel, facts())
    assert_balanced(batch.accounts[0])
    assert batch.accounts[0].stored == sum(drain.counts) == sum(rows_of_batch(batch).values())
    return batch


def test_rows_keep_their_stack_and_count():
    web = process(7, mapped(0x400000, 0x500000, 0x1000, binary=APP), mapped(0x7F00_0000_0000, 0x7F00_0010_0000, 0x2000, binary=LIBC))
    drain = DrainOf()
    drain.row(7, 23, user=[0x7F00_0000_0010, 0x400020, 0x400030])
    drain.row(7, 7, user=[0x400040, 0x400030], comm=b"worker-12")
    kernel = layout((TEXT, TEXT + 0x10_0000, kernel_binary(), b"", 0))
    drain.row(7, 3, user=[0x400020, 0x400030], kernel=[TEXT + 0x50, TEXT + 0x60])
    assert rows_of_batch(_build(drain, web, kernel=kernel)) == {
        (b"web", b"main", ("libc+0x2010", "app+0x1020*", "app+0x1030*")): 23,
        (b"web", b"worker-N", ("app+0x1040", "app+0x1030*")): 7,
        (b"web", b"main", ("_text+0x50", "_text+0x60*", "app+0x1020*", "app+0x1030*")): 3,
    }
