# SPDX-License-Identifier: Apache-2.0
"""What is sent in error or in bad faith, and a disk that is full: each is answered in a sentence, and what was acknowledged stays."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
import pytest
import zstandard

from emberwatch.v1 import collector_pb2 as collector
from emberwatch.v1.collector_pb2_grpc import CollectorStub
from tests.support.batches import WINDOW_NS, Row, batch_of, push_of
from tests.support.servers import READY_S, RunningServer, serving

ROWS: list[Row] = [("web", "main", ["app+0x10", "app+0x20"], 7), ("web", "main", ["app+0x30"], 23)]
SLOT_NS = 10 * 10**9
Push = Callable[[collector.PushRequest], collector.PushResponse]


@contextmanager
def pushing(address: str) -> Iterator[Push]:
    with grpc.insecure_channel(address, [("grpc.max_send_message_length", 64 << 20)]) as channel:
        push: Push = CollectorStub(channel).Push  # type: ignore[no-untyped-call]
        yield push


def window(sequence: int) -> collector.PushRequest:
    """30 samples in the slot before this one."""
    return push_of(batch_of(ROWS), sequence=sequence, start_unix_ns=time.time_ns() // SLOT_NS * SLOT_NS - WINDOW_NS)


def refusal(push: Push, request: collector.PushRequest) -> tuple[str, str]:
    """Status and sentence of a push that is refused."""
    with pytest.raises(grpc.RpcError) as caught:
        push(request)
    return caught.value.code().name, caught.value.details() or ""


def changed(request: collector.PushRequest, **fields: bytes | int) -> collector.PushRequest:
    other = collector.PushRequest()
    other.CopyFrom(request)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def hostile(good: collector.PushRequest) -> list[tuple[collector.PushRequest, str, str]]:
    """Requests, and what must be answered to them."""
    payload, raw = good.payload, good.raw_size_bytes
    bomb = zstandard.ZstdCompressor(level=3).compress(bytes(512 << 20))
    assert len(bomb) < 20_000
    nested = b"\xc3\x3e" * 120 + b"\xc4\x3e" * 120  # 120 groups of field 1000, one in the other
    future_ns = 4_102_444_800 * 10**9
    return [
        (changed(good, payload=payload[: len(payload) // 2]), "INVALID_ARGUMENT", "cut off"),
        (changed(good, payload=payload + payload), "INVALID_ARGUMENT", "something follows the zstd frame"),
        (changed(good, raw_size_bytes=raw - 1), "INVALID_ARGUMENT", "bytes"),
        (changed(good, raw_size_bytes=raw + 1), "INVALID_ARGUMENT", "bytes"),
        (changed(good, raw_crc32=good.raw_crc32 ^ 1), "INVALID_ARGUMENT", "checksum"),
        (changed(good, payload=bomb), "INVALID_ARGUMENT", "bytes"),
        (changed(good, payload=bomb, raw_size_bytes=512 << 20), "INVALID_ARGUMENT", "the limit is 67108864"),
        (changed(good, payload=bytes(16 << 20) + b"x"), "INVALID_ARGUMENT", "the limit is 16777216"),
        (changed(good, payload=bytes(18 << 20)), "RESOURCE_EXHAUSTED", "larger than max"),
        (_packed(good, nested), "INVALID_ARGUMENT", "not a FoldedBatch"),
        (changed(good, window_start_unix_ns=future_ns, window_end_unix_ns=future_ns + 1), "OUT_OF_RANGE", "from now"),
        (changed(good, window_start_unix_ns=10**18, window_end_unix_ns=10**18 + 1), "OUT_OF_RANGE", "windows are taken up to 48 h late"),
        (changed(good, agent_id=b"7"), "INVALID_ARGUMENT", "agent_id has 1 bytes instead of 16"),
        (changed(good, sequence=0), "INVALID_ARGUMENT", "sequence 0"),
    ]


def _packed(good: collector.PushRequest, raw: bytes) -> collector.PushRequest:
    payload = zstandard.ZstdCompressor().compress(raw)
    return changed(good, payload=payload, raw_size_bytes=len(raw), raw_crc32=zlib.crc32(raw))


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_hostile_pushes_are_refused_in_words_and_change_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(tmp_path) as server, pushing(server.grpc) as push:
        assert push(window(1)).status == collector.PUSH_STATUS_STORED
        before = resident_bytes(server.process.pid)
        for request, code, words in hostile(window(2)):
            found, said = refusal(push, request)
            assert (found, words in said) == (code, True), (found, said, words)
        assert resident_bytes(server.process.pid) - before < 128 << 20, "a bomb is not unpacked"
        assert push(window(1)).status == collector.PUSH_STATUS_DUPLICATE
        assert server.get("flamegraph", query="cpu{}")["samples"] == 30
        assert push(changed(window(2), window_start_unix_ns=0, window_end_unix_ns=0)).status == collector.PUSH_STATUS_STORED
        assert server.get("flamegraph", query="cpu{}")["samples"] == 60, "a window without a time has the server's"
    assert "Traceback" not in "".join(capfd.readouterr())


@contextmanager
def serving_on_small_disk(data: Path) -> Iterator[RunningServer]:
    """A server whose data lies on 3 MiB that nobody else sees."""
    mount = 'mount -t tmpfs -o size=3m emberwatch-test "$0" && exec "$@"'
    ours, theirs = socket.socketpair()
    serve = [sys.executable, "-m", "server.cli", "serve", "--data-dir", str(data), "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]
    with theirs:
        alone = ["unshare", "--mount", "/bin/sh", "-c", mount, str(data)]
        process = subprocess.Popen([*alone, *serve, "--ready-fd", str(theirs.fileno())], pass_fds=[theirs.fileno()])
    try:
        ours.settimeout(READY_S)
        facts = json.loads(ours.recv(65536) or b"{}")
        yield RunningServer(facts["http"], facts["grpc"], process)
    finally:
        ours.close()
        process.terminate()
        process.wait(60)


def can_mount() -> bool:
    command = ["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


def health(server: RunningServer) -> str:
    with urllib.request.urlopen(f"http://{server.http}/healthz", timeout=60) as answer:
        return str(json.loads(answer.read())["status"])


@pytest.mark.skipif(not can_mount(), reason="cannot mount a small disk here")
def test_full_disk_puts_pushes_off_and_keeps_what_was_acknowledged(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with serving_on_small_disk(tmp_path) as server, pushing(server.grpc) as push:
        assert push(window(1)).status == collector.PUSH_STATUS_STORED
        inside = Path(f"/proc/{server.process.pid}/root{tmp_path}")
        ballast = inside / "ballast"
        _fill(ballast)
        stored, sequence = 1, 2
        while sequence < 400:
            try:
                push(window(sequence))
            except grpc.RpcError as error:
                assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED, error
                assert "is full" in (error.details() or ""), error
                break
            stored, sequence = stored + 1, sequence + 1
        else:
            pytest.fail("the disk was never full")
        assert server.get("flamegraph", query="cpu{}")["samples"] == 30 * stored, "reading goes on"
        assert health(server) == "ok"
        ballast.unlink()
        assert push(window(sequence)).status == collector.PUSH_STATUS_STORED, "the same window is taken once there is room"
        assert server.get("flamegraph", query="cpu{}")["samples"] == 30 * (stored + 1)
    assert "Traceback" not in "".join(capfd.readouterr())


def _fill(ballast: Path) -> None:
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            return
