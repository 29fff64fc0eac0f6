# SPDX-License-Identifier: Apache-2.0
"""A FUSE file system with one file whose contents never come: whoever needs a page of it waits.

Messages: include/uapi/linux/fuse.h, version 7.31.
"""

import ctypes
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FILE_BYTES = 4096
_LOOKUP, _FORGET, _GETATTR, _OPEN, _READ, _INTERRUPT, _INIT, _OPENDIR, _BATCH_FORGET = 1, 2, 3, 14, 15, 36, 26, 27, 42
_REQUEST = struct.Struct("<IIQQIIII")  # length, opcode, number, node, uid, gid, pid, padding
_ATTRIBUTES = struct.Struct("<6Q10I")
_NOT_IMPLEMENTED = -38
_FOLDER, _FILE = 1, 2
_FOR_EVER_S = 1 << 30
_FORCE, _DETACH = 1, 2  # umount2(2); forced, what waits gets an error


class SilentFile:
    """`path` is the file; end() lets all who wait go on, with an error."""

    def __init__(self, folder: Path, device: int) -> None:
        self.path = folder / "file"
        self._folder = folder
        self._device = device
        self._end_once = threading.Lock()

    def end(self) -> None:
        if self._end_once.acquire(blocking=False):
            ctypes.CDLL(None).umount2(str(self._folder).encode(), _FORCE | _DETACH)
            os.close(self._device)

    def serve(self) -> None:
        while True:
            try:
                message = os.read(self._device, 1 << 20)
            except OSError:
                return
            _, opcode, number, node, *_ = _REQUEST.unpack_from(message)
            answer = _answer(opcode, node)
            if answer is not None:
                body, error = answer
                os.write(self._device, struct.pack("<IiQ", 16 + len(body), error, number) + body)


@contextmanager
def silent_file(folder: Path) -> Iterator[SilentFile]:
    """Mounted at `folder`. Raises OSError where that is not possible."""
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    library = ctypes.CDLL(None, use_errno=True)
    if library.mount(b"silent", str(folder).encode(), b"fuse", 0, options):
        os.close(device)
        raise OSError(ctypes.get_errno(), "mount a FUSE file system")
    file = SilentFile(folder, device)
    threading.Thread(target=file.serve, daemon=True).start()
    try:
        yield file
    finally:
        file.end()


def _answer(opcode: int, node: int) -> tuple[bytes, int] | None:
    """Body and error; None for no answer."""
    if opcode == _INIT:
        return struct.pack("<IIIIHHIIHHI28x", 7, 31, 65536, 0, 12, 9, 65536, 1, 0, 0, 0), 0
    if opcode == _LOOKUP:
        return struct.pack("<QQQQII", _FILE, 1, _FOR_EVER_S, _FOR_EVER_S, 0, 0) + _attributes(_FILE), 0
    if opcode == _GETATTR:
        return struct.pack("<QII", _FOR_EVER_S, 0, 0) + _attributes(node), 0
    if opcode in (_OPEN, _OPENDIR):
        return struct.pack("<QII", 1, 0, 0), 0
    if opcode in (_READ, _FORGET, _INTERRUPT, _BATCH_FORGET):
        return None
    return b"", _NOT_IMPLEMENTED


def _attributes(node: int) -> bytes:
    mode = 0o40755 if node == _FOLDER else 0o100755
    return _ATTRIBUTES.pack(node, FILE_BYTES, 8, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)
