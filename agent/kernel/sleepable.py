# SPDX-License-Identifier: Apache-2.0
"""Loads a BPF iterator that may sleep, which BCC has no way to ask for: bpf(2), BPF_PROG_LOAD with BPF_F_SLEEPABLE (5.18 for tasks).

Layout: union bpf_attr, BPF_PROG_LOAD, in include/uapi/linux/bpf.h. The verifier's log is only asked for after a refusal.
"""

import ctypes
import os
import struct

from agent.errors import KernelError
from agent.kernel.system import bpf

SLEEPABLE_ITERATOR = "SLEEPABLE_TRACING"
_PROG_LOAD = 5
_TYPE_TRACING, _ATTACH_ITERATOR = 26, 28
_FLAG_SLEEPABLE = 1 << 4
_INSTRUCTION_BYTES = 8
_LOG_BYTES = 1 << 20
_LOG_TAIL = 600
_ATTRIBUTE_BYTES = 160
# type, instructions: number and place, license, log level, size and place, kernel version, flags, name, interface, attach type,
# BTF descriptor, function info (3), line info (3), type to attach to, program to attach to
_LAYOUT = "<IIQQIIQII16sIIIIQIIQIIi"


def load_sleepable_iterator(name: str, instructions: bytes) -> int:
    """The descriptor of the program. `name` is bpf_iter__WHAT; its maps are descriptors in the instructions already, as BCC leaves them.

    Raises KernelError with the verifier's last words.
    """
    code, license_text = ctypes.create_string_buffer(instructions, len(instructions)), ctypes.create_string_buffer(b"GPL")
    log = ctypes.create_string_buffer(_LOG_BYTES)
    attach_type_id = _type_id(name.removeprefix("bpf_iter__"))
    for log_level in (0, 1):
        attributes = struct.pack(
            _LAYOUT,
            _TYPE_TRACING,
            len(instructions) // _INSTRUCTION_BYTES,
            ctypes.addressof(code),
            ctypes.addressof(license_text),
            log_level,
            _LOG_BYTES * log_level,
            ctypes.addressof(log) * log_level,
            0,
            _FLAG_SLEEPABLE,
            name.encode()[:15],
            0,
            _ATTACH_ITERATOR,
            *(0, 0, 0, 0, 0, 0, 0),
            attach_type_id,
            0,
        )
        try:
            return bpf(_PROG_LOAD, ctypes.create_string_buffer(attributes, _ATTRIBUTE_BYTES))
        except OSError as error:
            refusal = error
    raise KernelError(f"load {name}: {os.strerror(refusal.errno or 0)}; {log.value.decode(errors='replace')[-_LOG_TAIL:]}")


def _type_id(iterated: str) -> int:
    """Where the kernel's BTF has what is gone through. libbpf is there, as BCC's own library needs it."""
    try:
        library = ctypes.CDLL("libbpf.so.1")
        found = int(library.libbpf_find_vmlinux_btf_id(iterated.encode(), _ATTACH_ITERATOR))
    except (OSError, AttributeError) as error:
        raise KernelError(f"libbpf cannot be asked for {iterated}: {error}") from error
    if found < 0:
        raise KernelError(f"this kernel has no iterator over {iterated}")
    return found
