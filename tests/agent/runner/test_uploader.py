# SPDX-License-Identifier: Apache-2.0
"""Uploads go on whatever fails: a full disk, no descriptors left, a server that is away."""

import errno
import os
import threading
from pathlib import Path

import pytest

from agent.errors import PushDelayed
from agent.records.binary import Binary, BinaryId
from agent.records.kernel_layout import KernelLayout, KernelRange
from agent.runner.uploader import Sources, Uploader
from agent.ship.client import Upload
from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2

DEADLINE_S = 60
KERNEL = Binary(pb.BINARY_KIND_KERNEL, BinaryId(1, b"kernel23", b""), b"", (), 100)
REQUEST = symbols_pb2.SymbolRequest(kind=pb.BINARY_KIND_KERNEL, id=pb.BinaryId(build_id_kind=1, build_id=b"kernel23"))


class NoBinaries:
    def open_binary(self, binary_id: BinaryId) -> int | None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    def release_binary(self, binary_id: BinaryId) -> None:
        pass


class Server:
    """Takes an upload the second time."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.tries = 0
        self.has_it = threading.Event()

    def upload(self, upload: Upload) -> symbols_pb2.UploadResponse:
        self.tries += 1
        if self.tries == 1:
            raise self.error
        self.has_it.set()
        return symbols_pb2.UploadResponse()


@pytest.mark.parametrize("error", [OSError(errno.EIO, "disk"), PushDelayed("away"), ValueError("ours")], ids=lambda one: type(one).__name__)
def test_what_failed_is_served_when_the_server_asks_again(tmp_path: Path, error: Exception) -> None:
    server = Server(error)
    layout = KernelLayout((KernelRange(1, 101, KERNEL, b"", 0),), False, 0)
    uploader = Uploader(server.upload, Sources(NoBinaries(), lambda: layout, lambda *_: True, tmp_path), 0.0)
    uploader.start()
    try:
        elf = symbols_pb2.SymbolRequest(kind=pb.BINARY_KIND_ELF, id=REQUEST.id)
        uploader.want([elf, REQUEST])
        assert uploader.flush(DEADLINE_S)
        uploader.want([REQUEST])
        assert server.has_it.wait(DEADLINE_S)
    finally:
        uploader.close(DEADLINE_S)


def test_a_folder_that_is_gone_ends_no_thread(tmp_path: Path) -> None:
    server = Server(ValueError())
    layout = KernelLayout((KernelRange(1, 101, KERNEL, b"", 0),), False, 0)
    folder = tmp_path / "gone"
    uploader = Uploader(server.upload, Sources(NoBinaries(), lambda: layout, lambda *_: True, folder), 0.0)
    uploader.start()
    try:
        uploader.want([REQUEST])
        assert uploader.flush(DEADLINE_S)
        assert server.tries == 0
        folder.mkdir()
        server.tries = 1
        uploader.want([REQUEST])
        assert server.has_it.wait(DEADLINE_S)
    finally:
        uploader.close(DEADLINE_S)
