# SPDX-License-Identifier: Apache-2.0
"""Files in pieces: broken off and gone on with, doubled, too large, without room; never more on disk than was promised."""

import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from server.errors import BadRequest, LimitExceeded, Overloaded
from server.symbols.file_uploads import IDLE_S, MAX_SESSIONS, FileUploads, Piece, _Session
from server.symbols.settings import SymbolSettings
from tests.server.symbols.conftest import Clock

TOKEN = "0123456789abcdef"
BODY = os.urandom(700_001)


@pytest.fixture
def uploads(tmp_path: Path, clock: Clock) -> Iterator[FileUploads]:
    taken = FileUploads(SymbolSettings(tmp_path, upload_max_bytes=1_000_000, upload_quota_bytes=2_000_000, free_min_bytes=0), clock)
    yield taken
    taken.close()


def send(uploads: FileUploads, offset: int, data: bytes, size: int = len(BODY), token: str = TOKEN) -> tuple[int, bytes | None]:
    received, descriptor = uploads.append(Piece(token, offset, size), io.BytesIO(data))
    if descriptor is None:
        return received, None
    whole = os.pread(descriptor, size + 1, 0)
    os.close(descriptor)
    return received, whole


def test_pieces_in_order_twice_and_after_a_break(tmp_path: Path, uploads: FileUploads) -> None:
    assert send(uploads, 0, BODY[:300_000]) == (300_000, None)
    assert list(tmp_path.iterdir()) == []
    assert send(uploads, 0, BODY[:300_000]) == (300_000, None)
    assert send(uploads, 500_000, BODY[500_000:]) == (300_000, None)
    assert uploads.received(TOKEN) == 300_000
    assert send(uploads, 300_000, BODY[300_000:400_000]) == (400_000, None)
    assert send(uploads, 400_000, BODY[400_000:] + b"more than was told") == (len(BODY), BODY)
    assert uploads.received(TOKEN) == 0


def test_two_uploads_side_by_side(uploads: FileUploads) -> None:
    other = "fedcba9876543210"
    send(uploads, 0, BODY[:7])
    send(uploads, 0, b"x" * 23, 46, other)
    assert send(uploads, 23, b"y" * 23, 46, other)[1] == b"x" * 23 + b"y" * 23
    assert send(uploads, 7, BODY[7:])[1] == BODY


def test_size_that_changes_is_refused(uploads: FileUploads) -> None:
    send(uploads, 0, BODY[:7])
    with pytest.raises(BadRequest, match="an upload of 700001 bytes goes on as one of 8"):
        send(uploads, 7, b"x", 8)


def test_bounds(uploads: FileUploads, clock: Clock) -> None:
    with pytest.raises(LimitExceeded, match="1000001 bytes; at most 1000000 are taken"):
        send(uploads, 0, b"x", 1_000_001)
    with pytest.raises(BadRequest, match="empty"):
        send(uploads, 0, b"", 0)
    send(uploads, 0, b"x", 1_000_000, "a" * 16)
    send(uploads, 0, b"x", 1_000_000, "b" * 16)
    with pytest.raises(Overloaded, match="more than 2000000 bytes"):
        send(uploads, 0, b"x", 1000, "c" * 16)
    clock.now_s += IDLE_S + 1
    for number in range(MAX_SESSIONS):
        send(uploads, 0, b"x", 2, f"{number:016x}")
    with pytest.raises(Overloaded, match="uploads are running already"):
        send(uploads, 0, b"x", 2, "d" * 16)


def test_disk_without_room(tmp_path: Path) -> None:
    uploads = FileUploads(SymbolSettings(tmp_path, free_min_bytes=1 << 62, upload_max_bytes=1 << 60, upload_quota_bytes=1 << 60))
    with pytest.raises(Overloaded, match="would stay free"):
        send(uploads, 0, b"x", 1 << 59)


def test_an_idle_upload_that_goes_on_is_not_dropped_by_another_that_begins(
    uploads: FileUploads, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was looked up and its lock was not taken yet: its descriptor was closed, and then it wrote into the other's file."""
    other = "fedcba9876543210"
    send(uploads, 0, b"AAAA", 8)
    clock.now_s += IDLE_S + 1
    find = uploads._session

    def slowly(piece: Piece) -> _Session:
        session = find(piece)
        if piece.token == TOKEN:
            send(uploads, 0, b"BB", 8, other)
        return session

    monkeypatch.setattr(uploads, "_session", slowly)
    assert send(uploads, 4, b"AAAA", 8) == (8, b"AAAAAAAA")
    assert send(uploads, 2, b"BBBBBB", 8, other) == (8, b"BBBBBBBB")


def test_an_upload_that_was_dropped_before_its_turn_writes_nowhere(uploads: FileUploads, monkeypatch: pytest.MonkeyPatch) -> None:
    send(uploads, 0, b"AAAA", 8)
    find = uploads._session

    def slowly(piece: Piece) -> _Session:
        session = find(piece)
        uploads.close()
        return session

    monkeypatch.setattr(uploads, "_session", slowly)
    with pytest.raises(Overloaded, match="given up in between"):
        send(uploads, 4, b"AAAA", 8)
