# SPDX-License-Identifier: Apache-2.0
"""Payloads that are cut, glued, damaged, or lie about their size; and the limit, at, below and above."""

import contextlib
import resource
import zlib

import pytest
import zstandard

from server.errors import BadRequest, LimitExceeded
from server.ingest.inflate import inflate

RAW = bytes(range(256)) * 23
MOST = 1 << 20


def frame(raw: bytes, *, has_size: bool = True, has_checksum: bool = False) -> bytes:
    return zstandard.ZstdCompressor(write_content_size=has_size, write_checksum=has_checksum).compress(raw)


def inflated(payload: bytes, raw: bytes = RAW, *, size: int | None = None, most: int = MOST) -> bytes:
    return inflate(payload, len(raw) if size is None else size, zlib.crc32(raw), most)


@pytest.mark.parametrize("has_size", [True, False])
@pytest.mark.parametrize("has_checksum", [True, False])
@pytest.mark.parametrize("raw", [b"", b"x", RAW, bytes(700_000), RAW * 60])
def test_whole_frame_gives_back_what_went_in(raw: bytes, has_size: bool, has_checksum: bool) -> None:
    assert inflated(frame(raw, has_size=has_size, has_checksum=has_checksum), raw) == raw


def test_every_cut_is_noticed() -> None:
    payload = frame(RAW, has_checksum=True)
    for length in range(len(payload)):
        with pytest.raises(BadRequest):
            inflated(payload[:length])


@pytest.mark.parametrize("tail", [b"\0", frame(b""), frame(RAW), b"\x50\x2a\x4d\x18\x00\x00\x00\x00"])  # the last: an empty skippable frame
def test_nothing_may_follow_the_frame(tail: bytes) -> None:
    with pytest.raises(BadRequest, match="something follows the zstd frame"):
        inflated(frame(RAW) + tail)


def test_every_flipped_byte_is_noticed() -> None:
    payload = frame(RAW)
    for index in range(len(payload)):
        damaged = bytearray(payload)
        damaged[index] ^= 0x41
        with contextlib.suppress(BadRequest):
            assert inflated(bytes(damaged)) == RAW  # a flag that changes nothing


@pytest.mark.parametrize(("size", "words"), [(len(RAW) - 1, "holds more"), (len(RAW) + 1, f"only {len(RAW)}"), (0, "holds more")])
@pytest.mark.parametrize("has_size", [True, False])
def test_lie_about_the_size_is_refused(size: int, words: str, has_size: bool) -> None:
    with pytest.raises(BadRequest, match=words):
        inflated(frame(RAW, has_size=has_size), size=size)


def test_wrong_checksum_is_refused() -> None:
    with pytest.raises(BadRequest, match="checksum does not match"):
        inflate(frame(RAW), len(RAW), zlib.crc32(RAW) ^ 1, MOST)


def test_limit_at_below_and_above() -> None:
    for most, passes in ((len(RAW) + 1, True), (len(RAW), True), (len(RAW) - 1, False)):
        if passes:
            assert inflated(frame(RAW), most=most) == RAW
        else:
            with pytest.raises(LimitExceeded, match=f"the limit is {most}"):
                inflated(frame(RAW), most=most)


@pytest.mark.parametrize("claimed", [16 << 10, 512 << 20])
def test_bomb_of_512_mib_costs_no_memory(claimed: int) -> None:
    compressor = zstandard.ZstdCompressor(level=1).compressobj(size=512 << 20)
    bomb = b"".join(compressor.compress(bytes(1 << 24)) for _ in range(32)) + compressor.flush()
    assert len(bomb) < 64 << 10
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises((BadRequest, LimitExceeded)):
        inflate(bomb, claimed, 0, 64 << 20)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20 << 10  # KiB


@pytest.mark.parametrize("payload", [b"", b"\0", b"gzip? no", RAW, frame(RAW)[:4] + b"\xff" * 40])
def test_what_is_no_frame_is_refused_in_words(payload: bytes) -> None:
    with pytest.raises(BadRequest, match="zstd frame"):
        inflated(payload)


def test_frame_of_countless_empty_blocks_is_refused() -> None:
    header = frame(b"")[:-3]
    with pytest.raises(BadRequest, match="blocks"):
        inflated(header + bytes(3) * 100_000, b"")  # raw blocks of no bytes, none of them the last
