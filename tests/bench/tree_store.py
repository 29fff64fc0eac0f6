# SPDX-License-Identifier: Apache-2.0
"""As much of a store as a graph asks for: one service on many hosts, in blocks of a minute as SqlStore keeps them, without its database."""

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from server.query.kinds import CPU
from server.store.container import compress, decompress
from server.store.protocol import AccountSlot, AgentInfo, BinaryInfo, KindInfo, Piece, Selection, SeriesInfo, ServiceDictionary, Timeline
from server.store.rows import Rows, StoredRows, rows_bytes
from tests.bench.trees import NAMES, draw_stacks

SERVICE = "service"
MINUTE_NS = 60 * 10**9
PIECE_ROWS = 100_000
PERIOD_NS = 10_000_019


class TreeStore:
    """Two ranges of `minutes` minutes, one after the other, of the same stacks; values are drawn for each minute."""

    def __init__(self, node_count: int, minutes: int, hosts: int) -> None:
        random = np.random.default_rng(23)
        drawn = draw_stacks(node_count)
        self.keys, self.minutes, self._hosts = drawn.ends.size + 1, minutes, hosts
        self._dictionary = _dictionary(drawn.parents, drawn.names, drawn.ends)
        rows = min(PIECE_ROWS, self.keys)
        self._sums: list[int] = []
        self._blocks = [self._block(random, rows) for _ in range(2 * minutes)]

    def span(self, which: int) -> tuple[int, int]:
        """Start and end of range 0 or 1."""
        return which * self.minutes * MINUTE_NS + MINUTE_NS, (which + 1) * self.minutes * MINUTE_NS + MINUTE_NS

    def select(self, selection: Selection) -> Iterator[Piece]:
        """Blocks of a range, inflated and decoded as server.store.select does it."""
        for at, block in enumerate(self._blocks):
            start = (at + 1) * MINUTE_NS
            if selection.from_unix_ns <= start < selection.until_unix_ns:
                stored = StoredRows(decompress(block))
                keys, ids, indices, multiples = stored.keys(), stored.series_ids(), stored.series(), dict[str, int]()
                assert indices is not None
                if selection.is_compact and selection.columns is not None:
                    columns, multiples = stored.compact_columns(selection.columns)
                else:
                    columns = stored.columns(selection.columns)
                yield Piece(SERVICE, keys, ids[indices], columns, start, start + MINUTE_NS, multiples=multiples)

    def timeline(self, selection: Selection, step_ns: int) -> Timeline:
        """One slot of all series together."""
        first, last = (when // MINUTE_NS - 1 for when in (selection.from_unix_ns, selection.until_unix_ns))
        sums = np.array([[sum(self._sums[first:last])]], np.uint64)
        wanted = dict.fromkeys(selection.columns or ("samples",), sums)
        return Timeline(selection.from_unix_ns, step_ns, np.ones(1, np.int64), wanted, np.ones((1, 1), np.bool_))

    def kinds(self) -> list[KindInfo]:
        """The one kind."""
        return [CPU]

    def series(self, _kind: str, _from: int, _until: int) -> list[SeriesInfo]:
        """One a host."""
        last = 2 * self.minutes * MINUTE_NS
        return [SeriesInfo(i + 1, SERVICE, "cpu", {"service": SERVICE, "host": f"host-{i}"}, MINUTE_NS, last) for i in range(self._hosts)]

    def dictionary(self, _: str) -> ServiceDictionary:
        """Stacks of one name a frame."""
        return self._dictionary

    def binaries(self, _: Sequence[int]) -> list[BinaryInfo]:
        """None is asked for."""
        return []

    def accounts(self, _kind: str, _from: int, _until: int, _step: int | None = None) -> list[AccountSlot]:
        """None."""
        return []

    def agents(self) -> list[AgentInfo]:
        """None."""
        return []

    def _block(self, random: np.random.Generator, rows: int) -> bytes:
        keys = np.sort(random.choice(self.keys, rows, replace=False)).astype(np.int64)
        samples = random.zipf(2.0, rows).clip(max=5_000).astype(np.uint64)
        self._sums.append(int(samples.sum()))
        series = random.integers(1, self._hosts + 1, rows)
        return compress(rows_bytes(Rows(keys, series, {"samples": samples}, {"ns": PERIOD_NS, "observed": 1})))


def _dictionary(parents: npt.NDArray[np.intp], names: npt.NDArray[np.intp], ends: npt.NDArray[np.intp]) -> ServiceDictionary:
    kinds = np.full(NAMES + 1, pb.PLACE_KIND_JIT, np.uint8)
    none = np.zeros(ends.size + 1, np.uint32)
    return ServiceDictionary(
        service=SERVICE,
        frame_kinds=kinds,
        frame_refs=np.arange(NAMES + 1, dtype=np.uint32),
        frame_offsets=np.zeros(NAMES + 1, np.uint64),
        frame_is_return=np.zeros(NAMES + 1, np.uint8),
        node_parents=parents.astype(np.uint32),
        node_frames=names.astype(np.uint32),
        key_stacks=np.concatenate([[0], ends]).astype(np.uint32),
        key_seconds=none,
        key_objects=none,
        key_threads=none,
        key_classes=none,
        strings=[b"", *(b"package::function_%d" % number for number in range(NAMES))],
    )
