# SPDX-License-Identifier: Apache-2.0
"""Sends what the spool holds, in a thread of its own: one push at a time, the newest window first, then the oldest.

A refusal is final: the record is laid aside and its samples are counted. Everything else is tried again, later and later.
"""

import logging
import os
import random
import threading
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np
import zstandard
from google.protobuf.message import DecodeError

from agent.errors import PushDelayed, PushRejected
from agent.records.window import Parcel
from agent.ship.key_hash import KeyHasher
from agent.ship.known import KeyHashes, KnownKeys
from agent.ship.record import RecordId
from agent.ship.spool import Spool
from agent.ship.strip import Stripped, stripped, whole
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2, columns, packing
from emberwatch.v1 import marks_pb2 as marks
from emberwatch.v1.marks_pb2 import LossReason

log = logging.getLogger(__name__)

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
BACKLOG_PAUSE_S = 0.1
"""Between records of a backlog: the host comes first, and so does the server after its restart."""
_MOST_KEYS_IN_ANSWER = 1 << 26
_ZSTD_LEVEL = 9
"""Sent batches are small, or are sent once: 200,000 rows cost 0.06 s; level 6 makes 1.5 % more bytes, level 12 1 % fewer."""
_ZSTD_LEVEL_KNOWN = 15
"""Of batches without any frames, which are ten times smaller: 200,000 rows cost 0.03 s, for 6 to 10 % fewer bytes than level 9."""
_PACK_FROM_ROWS = 2000
"""Rows with frames from which packing is worth its CPU time: 1 us a row, for 40 % fewer bytes."""

KeyNumbers = columns.U64
Push = Callable[[collector_pb2.PushRequest], collector_pb2.PushResponse]
OnAnswer = Callable[[collector_pb2.PushResponse], None]


class Step(Enum):
    """What one step of the sender came to."""

    EMPTY = 1
    SENT = 2
    REJECTED = 3
    DAMAGED = 4
    DELAYED = 5


@dataclass(frozen=True, slots=True)
class SenderState:
    """For health and logs."""

    sent_records: int
    sent_bytes: int
    """Of payloads that were stored."""
    failures_in_a_row: int
    last_error: str
    """Empty when the last push passed."""


class Sender:
    """`step` sends one record; `start` runs it in a thread until `close`."""

    def __init__(
        self, spool: Spool, push: Push, agent_id: bytes, on_answer: Callable[[collector_pb2.PushResponse], None] | None = None
    ) -> None:
        """`on_answer` is called with every answer to a stored window (wanted symbols, settings), in the sender's thread."""
        self._spool = spool
        self._push = push
        self._agent_id = agent_id
        self._on_answer = on_answer
        self._hasher = KeyHasher(os.urandom(16))
        self._known = KnownKeys()
        self._newest_tried: RecordId | None = None
        self._state = SenderState(0, 0, 0, "")
        self._wake = threading.Event()
        self._is_idle = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to send."""
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Say that the spool has something new."""
        self._is_idle.clear()
        self._wake.set()

    def flush(self, timeout_s: float) -> bool:
        """Wait until the spool is empty; False when `timeout_s` was not enough."""
        end_s = time.monotonic() + timeout_s
        while self._spool.oldest() is not None:
            self.wake()
            if not self._is_idle.wait(max(0.0, end_s - time.monotonic())):
                return False
        return True

    def close(self, timeout_s: float) -> None:
        """End the thread. What was not sent stays in the spool; a push that takes longer than `timeout_s` is left behind."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def state(self) -> SenderState:
        """For health and logs; may be called from any thread."""
        return self._state

    def step(self) -> Step:
        """Send one record, if there is one."""
        record = self._next()
        if record is None:
            return Step.EMPTY
        parcel = self._spool.read(record)
        if parcel is None:
            self._newest_tried = record
            self._spool.acknowledge(record)
            return Step.DAMAGED
        try:
            attempt, response, sent_bytes = self._send(parcel)
        except PushRejected as error:
            log.error("window refused sequence=%d samples=%d error=%s", parcel.sequence, parcel.samples, error)
            self._refuse(record, str(error), error.reason)
            return Step.REJECTED
        except PushDelayed as error:
            self._note_delay(str(error))
            return Step.DELAYED
        except MemoryError:
            self._note_delay("not enough memory to send a window")
            return Step.DELAYED
        except Exception:
            log.exception("window cannot be sent and is laid aside sequence=%d samples=%d", parcel.sequence, parcel.samples)
            self._refuse(record, "internal error, see the log", marks.LOSS_REASON_REJECTED_MALFORMED)
            return Step.REJECTED
        self._spool.acknowledge(record)
        self._newest_tried = record
        self._take(attempt, response)
        if self._state.failures_in_a_row:
            log.info("server takes windows again waiting=%d", self._spool.state().records)
        self._state = SenderState(self._state.sent_records + 1, self._state.sent_bytes + sent_bytes, 0, "")
        return Step.SENT

    def _next(self) -> RecordId | None:
        """The newest when it was not tried yet, for the live view; else the oldest."""
        newest = self._spool.newest()
        if newest is None or self._newest_tried is None or newest > self._newest_tried:
            return newest
        return self._spool.oldest()

    def _send(self, parcel: Parcel) -> tuple[Stripped, collector_pb2.PushResponse, int]:
        """Push a parcel, in full when the server does not know keys that we thought it knows. Gives what was sent at last, the answer, and
        the bytes of the payload."""
        attempt = stripped(batch_from_parcel(parcel), self._hasher, self._known)
        request = self._request(parcel, attempt)
        response = self._push(request)
        if response.status == collector_pb2.PUSH_STATUS_UNKNOWN_KEYS:
            self._forget(attempt, response)
            attempt = whole(batch_from_parcel(parcel), self._hasher)
            request = self._request(parcel, attempt)
            response = self._push(request)
        if response.status not in {collector_pb2.PUSH_STATUS_STORED, collector_pb2.PUSH_STATUS_DUPLICATE}:
            raise PushDelayed(f"the server answered {response.status} to a window with all its frames")
        return attempt, response, len(request.payload)

    def _take(self, attempt: Stripped, response: collector_pb2.PushResponse) -> None:
        """Use what an answer says. The window is stored: a fault in here loses nothing of it."""
        try:
            if response.status == collector_pb2.PUSH_STATUS_STORED:
                self._learn(attempt, response)
            if self._on_answer is not None:
                self._on_answer(response)
        except Exception:
            log.exception("an answer of the server was not used")

    def _request(self, parcel: Parcel, attempt: Stripped) -> collector_pb2.PushRequest:
        payload, raw_size_bytes, raw_crc32 = parcel.payload, parcel.raw_size_bytes, parcel.raw_crc32
        is_packed = attempt.new_count >= _PACK_FROM_ROWS and packing.pack(attempt.batch)
        if attempt.known_count or is_packed:
            raw = attempt.batch.SerializeToString()
            level = _ZSTD_LEVEL if attempt.new_count else _ZSTD_LEVEL_KNOWN
            payload, raw_size_bytes, raw_crc32 = zstandard.ZstdCompressor(level=level).compress(raw), len(raw), zlib.crc32(raw)
        return collector_pb2.PushRequest(
            agent_id=self._agent_id,
            epoch_unix_ns=parcel.epoch_unix_ns,
            sequence=parcel.sequence,
            part=parcel.part,
            is_last_part=parcel.is_last_part,
            window_start_unix_ns=parcel.window_start_unix_ns,
            window_end_unix_ns=parcel.window_end_unix_ns,
            payload=payload,
            raw_size_bytes=raw_size_bytes,
            raw_crc32=raw_crc32,
            dictionary_id=self._known.dictionary_id if attempt.known_count else b"",
        )

    def _learn(self, attempt: Stripped, response: collector_pb2.PushResponse) -> None:
        """Remember the numbers of new keys. An answer that does not fit is not believed: those keys are sent in full again."""
        lanes, numbers = [], []
        for answer in response.new_key_ids:
            ids = _numbers(answer.keys)
            if answer.series < len(attempt.series) and len(ids) == len(attempt.series[answer.series].new_hashes):
                lanes.append(attempt.series[answer.series].new_hashes.lanes)
                numbers.append(ids)
        if numbers:
            self._known.learn(response.dictionary_id, KeyHashes(np.concatenate(lanes, axis=1)), np.concatenate(numbers))

    def _forget(self, attempt: Stripped, response: collector_pb2.PushResponse) -> None:
        if response.dictionary_id != self._known.dictionary_id:
            self._known.forget_all()
            return
        for answer in response.unknown_keys:
            if answer.series < len(attempt.series):
                series = attempt.series[answer.series]
                rows = np.flatnonzero(np.isin(series.known_numbers, _numbers(answer.keys).astype(np.int64)))
                self._known.forget(series.known_hashes.take(rows))

    def _refuse(self, record: RecordId, error: str, reason: LossReason) -> None:
        self._spool.reject(record, reason)
        self._newest_tried = record
        self._state = replace(self._state, last_error=error)

    def _note_delay(self, error: str) -> None:
        if not self._state.failures_in_a_row:
            log.warning("server does not take windows, they wait in the spool error=%s", error)
        self._state = replace(self._state, failures_in_a_row=self._state.failures_in_a_row + 1, last_error=error)

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._closing.is_set():
            try:
                step = self.step()
            except Exception:
                log.exception("sender failed, the window stays in the spool")
                self._note_delay("internal error, see the log")
                step = Step.DELAYED
            if step is Step.DELAYED:
                self._closing.wait(pause_s * random.uniform(0.5, 1.0))
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
                continue
            pause_s = FIRST_PAUSE_S
            if step is Step.EMPTY:
                self._wait_for_more()
            elif self._spool.oldest() is not None:
                self._closing.wait(BACKLOG_PAUSE_S)

    def _wait_for_more(self) -> None:
        """Say that all is sent, and wait. What is appended between is not missed: wake() is looked at first."""
        if not self._wake.is_set():
            self._is_idle.set()
        self._wake.wait()
        self._wake.clear()


def batch_from_parcel(parcel: Parcel) -> pb.FoldedBatch:
    """Unpack a payload of our own. Raises PushRejected when it is not what its envelope says: sending it would be refused."""
    try:
        if zstandard.frame_content_size(parcel.payload) != parcel.raw_size_bytes:
            raise ValueError("the size in the frame is not the size in the envelope")
        raw = zstandard.ZstdDecompressor().decompress(parcel.payload)
        if zlib.crc32(raw) != parcel.raw_crc32:
            raise ValueError("the checksum of the content is wrong")
        return pb.FoldedBatch.FromString(raw)
    except (ValueError, zstandard.ZstdError, DecodeError) as error:
        raise PushRejected(f"window {parcel.sequence} cannot be read: {error}", marks.LOSS_REASON_SPOOL_CORRUPT) from error


def _numbers(column: pb.Column) -> KeyNumbers:
    try:
        return columns.decode_column(column, _MOST_KEYS_IN_ANSWER)
    except columns.ColumnError as error:
        raise PushDelayed(f"the server's answer cannot be read: {error}") from error
