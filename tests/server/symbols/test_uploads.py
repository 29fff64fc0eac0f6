# SPDX-License-Identifier: Apache-2.0
"""Uploads piece by piece: in order, again, after a break, beyond every limit."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from emberwatch.v1 import batch_pb2, symbols_pb2
from server.errors import BadRequest, Overloaded
from server.symbols import uploads
from server.symbols.identity import BinaryKey
from server.symbols.settings import SymbolSettings
from server.symbols.uploads import Delivered, SymbolUploads
from tests.server.symbols.programs import proto_id

KEY = BinaryKey(batch_pb2.BINARY_KIND_ELF, batch_pb2.BUILD_ID_KIND_GNU, b"\1" * 20, b"\2" * 16)
OTHER = replace(KEY, content_hash=b"\3" * 16)
DATA = bytes(range(256)) * 9 + b"7"
CONTINUE, DONE, NOT_WANTED = symbols_pb2.UPLOAD_STATUS_CONTINUE, symbols_pb2.UPLOAD_STATUS_DONE, symbols_pb2.UPLOAD_STATUS_NOT_WANTED


class Receiver:
    """Takes finished uploads and knows what is wanted."""

    def __init__(self) -> None:
        self.files: list[tuple[BinaryKey, bytes]] = []
        self.refusals: dict[BinaryKey, str] = {}
        self.now_s = 0.0

    def refusal(self, key: BinaryKey) -> str:
        return self.refusals.get(key, "")

    def deliver(self, delivered: Delivered) -> None:
        self.files.append((delivered.key, os.pread(delivered.descriptor, 1 << 20, 0)))
        self.refusals[delivered.key] = "known"
        os.close(delivered.descriptor)

    def clock(self) -> float:
        return self.now_s


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


def make(
    directory: Path,
    receiver: Receiver,
    upload_max_bytes: int = 2 << 30,
    upload_quota_bytes: int = 8 << 30,
    free_min_bytes: int = 0,
) -> SymbolUploads:
    settings = SymbolSettings(
        directory,
        upload_max_bytes=upload_max_bytes,
        upload_quota_bytes=upload_quota_bytes,
        free_min_bytes=free_min_bytes,
    )
    return SymbolUploads(settings, receiver.refusal, receiver.deliver, receiver.clock)


def piece(offset: int, data: bytes, whole: bytes = DATA, key: BinaryKey = KEY) -> symbols_pb2.UploadRequest:
    return symbols_pb2.UploadRequest(
        kind=batch_pb2.BINARY_KIND_ELF,
        id=proto_id(key),
        format=symbols_pb2.UPLOAD_FORMAT_ELF,
        size_bytes=len(whole),
        offset=offset,
        data=data,
        upload_hash=hashlib.blake2b(whole, digest_size=16).digest(),
    )


def test_pieces_in_order_become_the_file(tmp_path: Path, receiver: Receiver) -> None:
    pieces = make(tmp_path, receiver)
    answers = [pieces.receive(piece(at, DATA[at : at + 1000])) for at in (0, 1000, 2000)]
    assert [(a.status, a.next_offset) for a in answers] == [(CONTINUE, 1000), (CONTINUE, 2000), (DONE, 2305)]
    assert receiver.files == [(KEY, DATA)]


def test_an_empty_piece_asks_where_to_go_on(tmp_path: Path, receiver: Receiver) -> None:
    pieces = make(tmp_path, receiver)
    assert pieces.receive(piece(0, b"")).next_offset == 0
    pieces.receive(piece(0, DATA[:700]))
    assert pieces.receive(piece(0, b"")).next_offset == 700


def test_pieces_twice_early_and_overlapping_change_nothing(tmp_path: Path, receiver: Receiver) -> None:
    """Two agents that send the same file share the work."""
    pieces = make(tmp_path, receiver)
    for offset, next_offset in [(1000, 0), (0, 1000), (0, 1000), (500, 1000), (2000, 1000), (1000, 2000)]:
        answer = pieces.receive(piece(offset, DATA[offset : offset + 1000][:1000]))
        assert (answer.status, answer.next_offset) == (CONTINUE, next_offset)
    assert pieces.receive(piece(2000, DATA[2000:])).status == DONE
    assert receiver.files == [(KEY, DATA)]


def test_files_of_other_content_never_mix(tmp_path: Path, receiver: Receiver) -> None:
    pieces = make(tmp_path, receiver)
    changed = DATA[:-1] + b"8"
    pieces.receive(piece(0, DATA[:2000]))
    assert pieces.receive(piece(2000, changed[2000:], changed)).next_offset == 0
    assert pieces.receive(piece(0, DATA, key=OTHER)).status == DONE
    assert pieces.receive(piece(2000, DATA[2000:])).status == DONE
    assert receiver.files == [(OTHER, DATA), (KEY, DATA)]


def test_bytes_that_do_not_give_the_hash_are_refused(tmp_path: Path, receiver: Receiver) -> None:
    pieces = make(tmp_path, receiver)
    with pytest.raises(BadRequest, match="do not give its hash"):
        pieces.receive(piece(0, DATA[:-1] + b"8"))
    assert receiver.files == []
    assert pieces.receive(piece(0, DATA)).status == DONE


def test_what_is_known_is_not_wanted(tmp_path: Path, receiver: Receiver) -> None:
    pieces = make(tmp_path, receiver)
    assert pieces.receive(piece(0, DATA)).status == DONE
    answer = pieces.receive(piece(0, DATA))
    assert (answer.status, answer.reason) == (NOT_WANTED, "known")


def test_restart_forgets_half_files(tmp_path: Path, receiver: Receiver) -> None:
    """F33: nothing half is visible, before or after; the agent starts again at 0."""
    first = make(tmp_path, receiver)
    first.receive(piece(0, DATA[:2000]))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    (tmp_path / "uploads" / "leftover").write_bytes(b"half")
    second = make(tmp_path, receiver)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert second.receive(piece(2000, DATA[2000:])).next_offset == 0
    first.close()


def test_sizes_at_and_over_the_limit(tmp_path: Path, receiver: Receiver) -> None:
    assert make(tmp_path, receiver, upload_max_bytes=len(DATA)).receive(piece(0, DATA)).status == DONE
    answer = make(tmp_path, Receiver(), upload_max_bytes=len(DATA) - 1).receive(piece(0, DATA))
    assert (answer.status, answer.reason) == (NOT_WANTED, "2305 bytes, at most 2304 are taken")


def test_quota_of_unfinished_uploads(tmp_path: Path, receiver: Receiver) -> None:
    pieces = make(tmp_path, receiver, upload_quota_bytes=2 * len(DATA) - 1)
    pieces.receive(piece(0, DATA[:7]))
    with pytest.raises(Overloaded, match="unfinished uploads"):
        pieces.receive(piece(0, DATA, key=OTHER))
    pieces.receive(piece(7, DATA[7:]))
    assert pieces.receive(piece(0, DATA, key=OTHER)).status == DONE


def test_too_many_at_once_until_the_idle_make_room(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_SESSIONS", 1)
    pieces = make(tmp_path, receiver)
    pieces.receive(piece(0, DATA[:7]))
    receiver.now_s = uploads.IDLE_S
    with pytest.raises(Overloaded):
        pieces.receive(piece(0, DATA, key=OTHER))
    receiver.now_s += 1
    assert pieces.receive(piece(0, DATA, key=OTHER)).status == DONE
    assert pieces.receive(piece(0, b"")).next_offset == 0


def test_uploads_stop_before_the_disk_is_full(tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs(tmp_path)

    class Disk:
        f_frsize, f_blocks, f_bavail = 4096, real.f_blocks, 4

    monkeypatch.setattr("server.symbols.uploads.os.statvfs", lambda _: Disk)
    assert make(tmp_path, receiver).receive(piece(0, DATA)).status == DONE
    with pytest.raises(Overloaded, match="stay free"):
        make(tmp_path, receiver, free_min_bytes=14_080).receive(piece(0, DATA, key=OTHER))
    assert make(tmp_path, receiver, free_min_bytes=14_079).receive(piece(0, DATA, key=OTHER)).status == DONE


def changed(**fields: object) -> symbols_pb2.UploadRequest:
    request = piece(0, DATA)
    for name, value in fields.items():
        if name == "build_id":
            request.id.build_id = value  # type: ignore[assignment]
        else:
            setattr(request, name, value)
    return request


@pytest.mark.parametrize(
    "request_",
    [
        changed(format=0),
        changed(format=99),
        changed(kind=0),
        changed(build_id=b"abc"),
        changed(build_id=bytes(20)),
        changed(upload_hash=b""),
        changed(upload_hash=b"\1" * 32),
        changed(size_bytes=0),
        changed(size_bytes=len(DATA) - 1),
        changed(offset=1),
        changed(offset=2**64 - 1),
        changed(data=bytes((1 << 20) + 1), size_bytes=2 << 20),
    ],
)
def test_requests_that_make_no_sense(tmp_path: Path, receiver: Receiver, request_: symbols_pb2.UploadRequest) -> None:
    with pytest.raises(BadRequest):
        make(tmp_path, receiver).receive(request_)


def test_an_upload_does_not_change_its_size_on_the_way(tmp_path: Path, receiver: Receiver) -> None:
    pieces = make(tmp_path, receiver)
    pieces.receive(piece(0, DATA[:7]))
    other = piece(7, DATA[7:])
    other.size_bytes += 1
    with pytest.raises(BadRequest, match="goes on as one of"):
        pieces.receive(other)
