# SPDX-License-Identifier: Apache-2.0
"""A server that behaves: it decodes pushes row by row, numbers keys per service, and remembers every row it stored."""

import zlib
from collections import Counter
from dataclasses import dataclass, field

import zstandard

from agent.errors import PushDelayed
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2, columns, packing
from tests.support.drains import key_texts

Key = tuple[bytes, tuple[str, ...]]
"""(thread, frames leaf first), as in rows_of_batch."""


@dataclass
class FakeCollector:
    """`push` is what a client's push is. Rows of kind cpu end up in `rows`, summed over all pushes."""

    dictionary_id: bytes = b"D" * 16
    numbers: dict[bytes, dict[Key, int]] = field(default_factory=dict)
    rows: Counter[tuple[bytes, bytes, tuple[str, ...]]] = field(default_factory=Counter)
    stored: dict[tuple[int, int], pb.FoldedBatch] = field(default_factory=dict)
    sequences: list[int] = field(default_factory=list)
    layouts: list[int] = field(default_factory=list)
    payload_bytes: list[int] = field(default_factory=list)
    answers: list["collector_pb2.PushStatus"] = field(default_factory=list)
    failures: list[Exception] = field(default_factory=list)
    """Raised, one a push, before anything is stored."""
    lost_answers: int = 0
    """This many pushes are stored, but their answer does not arrive."""

    def forget(self, dictionary_id: bytes) -> None:
        """Begin a new numbering, as a server with a new store does."""
        self.dictionary_id = dictionary_id
        self.numbers = {}

    def push(self, request: collector_pb2.PushRequest) -> collector_pb2.PushResponse:
        self.sequences.append(request.sequence)
        if self.failures:
            raise self.failures.pop(0)
        response = self._answer(request)
        self.answers.append(response.status)
        if self.lost_answers:
            self.lost_answers -= 1
            raise PushDelayed("the answer was lost")
        return response

    def _answer(self, request: collector_pb2.PushRequest) -> collector_pb2.PushResponse:
        response = collector_pb2.PushResponse(dictionary_id=self.dictionary_id)
        raw = zstandard.ZstdDecompressor().decompress(request.payload)
        assert (len(raw), zlib.crc32(raw)) == (request.raw_size_bytes, request.raw_crc32)
        batch = pb.FoldedBatch.FromString(raw)
        self.layouts.append(batch.version)
        packing.unpack(batch, 1 << 22)
        if (request.epoch_unix_ns, request.sequence) in self.stored:
            response.status = collector_pb2.PUSH_STATUS_DUPLICATE
            return response
        unknown = self._unknown(request, batch)
        if unknown is not None:
            response.status = collector_pb2.PUSH_STATUS_UNKNOWN_KEYS
            response.unknown_keys.extend(unknown)
            return response
        response.status = collector_pb2.PUSH_STATUS_STORED
        response.new_key_ids.extend(self._store(batch))
        self.stored[request.epoch_unix_ns, request.sequence] = batch
        self.payload_bytes.append(len(request.payload))
        return response

    def _unknown(self, request: collector_pb2.PushRequest, batch: pb.FoldedBatch) -> list[collector_pb2.SeriesKeys] | None:
        """Answer the unknown keys, or None when all is known."""
        known = [[int(number) for number in columns.decode_column(series.known_keys, 1 << 24)] for series in batch.series]
        if any(known) and request.dictionary_id != self.dictionary_id:
            return []
        unknown = []
        for index, (series, numbers) in enumerate(zip(batch.series, known, strict=True)):
            assert numbers == sorted(set(numbers)), "known keys ascend"
            missing = sorted(set(numbers) - set(self._of_service(series).values()))
            if missing:
                unknown.append(collector_pb2.SeriesKeys(series=index, keys=columns.encode_ascending(missing)))
        return unknown or None

    def _store(self, batch: pb.FoldedBatch) -> list[collector_pb2.SeriesKeys]:
        answers = []
        for index, (series, new) in enumerate(zip(batch.series, key_texts(batch), strict=True)):
            numbers = self._of_service(series)
            ids = [numbers.setdefault(key, len(numbers)) for key in new]
            answers.append(collector_pb2.SeriesKeys(series=index, keys=columns.encode_column(ids)))
            if series.kind == "cpu":
                by_number = {number: key for key, number in numbers.items()}
                keys = [by_number[int(number)] for number in columns.decode_column(series.known_keys, 1 << 24)] + new
                values = [int(value) for value in columns.decode_column(series.columns[0].values, 1 << 24)]
                for (thread, frames), value in zip(keys, values, strict=True):
                    self.rows[_service(series), thread, frames] += value
        return answers

    def _of_service(self, series: pb.Series) -> dict[Key, int]:
        return self.numbers.setdefault(_service(series), {})


def _service(series: pb.Series) -> bytes:
    return next(label.value for label in series.labels if label.name == "service")
