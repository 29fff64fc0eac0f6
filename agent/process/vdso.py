# SPDX-License-Identifier: Apache-2.0
"""The vDSO: a small ELF image the kernel maps into every process. All 64-bit processes of a host have the same one: ours is read."""

import os
from pathlib import Path

from agent.process.elf_header import read_identity
from agent.process.maps import parse_maps
from agent.records.binary import Binary
from emberwatch.v1 import batch_pb2 as pb

VDSO_PATH = b"[vdso]"
_MAX_IMAGE_BYTES = 64 << 10
_MAX_MAPS_BYTES = 8 << 20


def read_image(proc_self: Path = Path("/proc/self")) -> bytes:
    """The image of our own vDSO, b"" when there is none or it cannot be read."""
    try:
        with (proc_self / "maps").open("rb") as maps:
            ours = [m for m in parse_maps(maps.read(_MAX_MAPS_BYTES)).mappings if m.path == VDSO_PATH]
        if not ours:
            return b""
        with (proc_self / "mem").open("rb", buffering=0) as memory:
            memory.seek(ours[0].start)
            return memory.read(min(ours[0].end - ours[0].start, _MAX_IMAGE_BYTES))
    except (OSError, ValueError):
        return b""


def binary_from_image(image: bytes) -> Binary | None:
    """The vDSO as a binary; None for an empty image. Its offsets count in the image."""
    if not image:
        return None
    identity = read_identity(lambda offset, size: image[offset : offset + size], len(image))
    return Binary(pb.BINARY_KIND_VDSO, identity.id, VDSO_PATH, identity.segments, len(image))


def open_image(image: bytes) -> int | None:
    """A descriptor of a nameless file in memory that holds the image; None when there is no memory for it."""
    try:
        fd = os.memfd_create("vdso", os.MFD_CLOEXEC)
    except OSError:
        return None
    try:
        os.pwrite(fd, image, 0)
    except OSError:
        os.close(fd)
        return None
    return fd
