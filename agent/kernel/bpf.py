# SPDX-License-Identifier: Apache-2.0
"""BPF maps and programs by descriptor: bpf(2) without a library, with batch reads into numpy arrays.

Attribute layouts: union bpf_attr in include/uapi/linux/bpf.h. Errors are OSError where the caller tells them apart, KernelError
elsewhere.
"""

import contextlib
import ctypes
import errno
import os
import resource
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.errors import KernelError
from agent.kernel.refusal import KernelRefusal
from agent.kernel.system import bpf

STATS_RUN_TIME = 0
MAP_TYPE_HASH = 1
_ATTRIBUTE_BYTES = 128

Rows = npt.NDArray[Any]
"""Map keys or values as they lie in the kernel; the caller names the dtype."""


class Command(IntEnum):
    """bpf(2) commands, enum bpf_cmd."""

    MAP_CREATE = 0
    MAP_LOOKUP_ELEM = 1
    MAP_UPDATE_ELEM = 2
    MAP_DELETE_ELEM = 3
    PROG_GET_NEXT_ID = 11
    MAP_GET_NEXT_ID = 12
    OBJ_GET_INFO_BY_FD = 15
    RAW_TRACEPOINT_OPEN = 17
    MAP_LOOKUP_BATCH = 24
    MAP_LOOKUP_AND_DELETE_BATCH = 25
    LINK_CREATE = 28
    ENABLE_STATS = 32
    ITER_CREATE = 33


@dataclass(frozen=True, slots=True)
class ProgramInfo:
    """What the kernel tells of a loaded program."""

    id: int
    instructions: int
    """After the verifier rewrote them (xlated)."""
    run_time_ns: int
    """0 unless statistics are on."""
    runs: int
    missed_runs: int
    """For the program was running on that CPU already; 0 before 5.12."""


def create_hash(name: str, key_bytes: int, value_bytes: int, entries: int) -> int:
    """A pre-allocated hash map; its descriptor."""
    attributes = _attributes("<IIIIIII16s", MAP_TYPE_HASH, key_bytes, value_bytes, entries, 0, 0, 0, name.encode()[:15])
    try:
        return _with_memory(Command.MAP_CREATE, attributes)
    except PermissionError as error:
        raise KernelRefusal("bpf(2) is not permitted", "run as root or with CAP_BPF and CAP_PERFMON") from error
    except OSError as error:
        raise KernelError(f"cannot make the BPF map {name} of {entries} entries: {error.strerror}") from error


def lookup(descriptor: int, key: bytes, value_bytes: int) -> bytes:
    """The value of a key. Raises OSError with ENOENT when it is not there."""
    value = ctypes.create_string_buffer(value_bytes)
    _element(Command.MAP_LOOKUP_ELEM, descriptor, key, ctypes.addressof(value))
    return value.raw


def update(descriptor: int, key: bytes, value: bytes) -> None:
    """Set the value of a key, new or not. Raises OSError."""
    buffer = ctypes.create_string_buffer(value, len(value))
    _element(Command.MAP_UPDATE_ELEM, descriptor, key, ctypes.addressof(buffer))


def delete(descriptor: int, key: bytes) -> bool:
    """Remove a key. False when it was not there."""
    try:
        _element(Command.MAP_DELETE_ELEM, descriptor, key, 0)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise
        return False
    return True


def drain(descriptor: int, key_type: npt.DTypeLike, value_type: npt.DTypeLike, chunk: int) -> Iterator[tuple[Rows, Rows]]:
    """Take everything out of a hash map, `chunk` entries at most at a time."""
    return _batches(Command.MAP_LOOKUP_AND_DELETE_BATCH, descriptor, np.dtype(key_type), np.dtype(value_type), chunk)


def read_all(descriptor: int, key_type: npt.DTypeLike, value_type: npt.DTypeLike, chunk: int) -> Iterator[tuple[Rows, Rows]]:
    """Everything in a hash map, which keeps it."""
    return _batches(Command.MAP_LOOKUP_BATCH, descriptor, np.dtype(key_type), np.dtype(value_type), chunk)


def attach_raw_tracepoint(name: str, program: int) -> int:
    """Attach a program to a raw tracepoint until the descriptor that is returned closes."""
    buffer = ctypes.create_string_buffer(name.encode())
    try:
        return bpf(Command.RAW_TRACEPOINT_OPEN, _attributes("<QI", ctypes.addressof(buffer), program))
    except OSError as error:
        raise KernelError(f"attach to raw tracepoint {name}: {error.strerror}") from error


def link_create(program: int, attach_type: int, iterated: tuple[int, int]) -> int:
    """Join a program to what it goes through: address and size of a union bpf_iter_link_info. Raises OSError."""
    return bpf(Command.LINK_CREATE, _attributes("<IIIIQI", program, 0, attach_type, 0, *iterated))


def iter_create(link: int) -> int:
    """A descriptor that runs the program of a link when it is read. Raises OSError."""
    return bpf(Command.ITER_CREATE, _attributes("<II", link, 0))


def enable_run_time_statistics() -> int:
    """Have the kernel measure BPF programs until the descriptor that is returned closes."""
    try:
        return bpf(Command.ENABLE_STATS, _attributes("<I", STATS_RUN_TIME))
    except OSError as error:
        raise KernelError(f"the kernel does not measure BPF run time: {error.strerror}") from error


def program_info(descriptor: int) -> ProgramInfo:
    """Identity, size and run time; struct bpf_prog_info."""
    info = ctypes.create_string_buffer(224)
    bpf(Command.OBJ_GET_INFO_BY_FD, _attributes("<IIQ", descriptor, len(info), ctypes.addressof(info)))
    program_id, xlated_bytes = struct.unpack_from("<I", info, 4)[0], struct.unpack_from("<I", info, 20)[0]
    return ProgramInfo(program_id, xlated_bytes // 8, *struct.unpack_from("<QQQ", info, 192))


def ids(command: Command) -> set[int]:
    """Ids of all programs (PROG_GET_NEXT_ID) or maps (MAP_GET_NEXT_ID) of this kernel."""
    found: set[int] = set()
    last = 0
    while True:
        attributes = _attributes("<II", last, 0)
        try:
            bpf(command, attributes)
        except OSError as error:
            if error.errno == errno.ENOENT:
                return found
            raise
        last = struct.unpack_from("<I", attributes, 4)[0]
        found.add(last)


def map_bytes(descriptor: int) -> int:
    """Kernel memory of a map, as charged; 0 when the kernel does not say. Source: bpf_map_show_fdinfo, kernel/bpf/syscall.c."""
    for line in Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines():
        if line.startswith("memlock:"):
            return int(line.split()[1])
    return 0


def _batches(
    command: Command, descriptor: int, key_type: np.dtype[Any], value_type: np.dtype[Any], chunk: int
) -> Iterator[tuple[Rows, Rows]]:
    """One batch call after another. A chunk too small for one hash bucket (ENOSPC) is doubled."""
    position = ctypes.create_string_buffer(max(8, key_type.itemsize))
    start = 0
    while True:
        keys, values = np.empty(chunk, key_type), np.empty(chunk, value_type)
        attributes = _attributes(
            "<QQQQIIQQ", start, ctypes.addressof(position), keys.ctypes.data, values.ctypes.data, chunk, descriptor, 0, 0
        )
        is_last = False
        try:
            bpf(command, attributes)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                chunk *= 2
                continue
            if error.errno != errno.ENOENT:
                raise KernelError(f"read a BPF map: {error.strerror}") from error
            is_last = True
        count = struct.unpack_from("<I", attributes, 32)[0]
        if count:
            yield keys[:count], values[:count]
        if is_last:
            return
        start = ctypes.addressof(position)


def _element(command: Command, descriptor: int, key: bytes, value_address: int) -> None:
    key_buffer = ctypes.create_string_buffer(key, len(key))
    bpf(command, _attributes("<IIQQQ", descriptor, 0, ctypes.addressof(key_buffer), value_address, 0))


def _attributes(layout: str, *values: int | bytes) -> "ctypes.Array[ctypes.c_char]":
    """A union bpf_attr with these leading fields, the rest zero."""
    buffer = ctypes.create_string_buffer(_ATTRIBUTE_BYTES)
    struct.pack_into(layout, buffer, 0, *values)
    return buffer


def _with_memory(command: Command, attributes: "ctypes.Array[ctypes.c_char]") -> int:
    """Before 5.11 maps count against RLIMIT_MEMLOCK: lift it once when the kernel says EPERM."""
    try:
        return bpf(command, attributes)
    except PermissionError:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_MEMLOCK, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        return bpf(command, attributes)


def close(*descriptors: int) -> None:
    """Close each; one already closed is an error of ours."""
    for descriptor in descriptors:
        os.close(descriptor)
