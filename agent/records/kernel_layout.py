# SPDX-License-Identifier: Apache-2.0
"""Where kernel code lies on this host, so that kernel addresses become places."""

from dataclasses import dataclass

from agent.records.binary import Binary


@dataclass(frozen=True, slots=True)
class KernelRange:
    """A range of kernel code: the image, a module, or one BPF program."""

    start: int
    end: int
    binary: Binary | None
    """The image or the module; offsets count from `start` (for the image that is _text). None for a BPF program."""
    name: bytes
    """Name of the module or of the BPF program, b"" for the image."""
    tag: int
    """The BPF program's 8 byte tag as a big-endian number, else 0."""


@dataclass(frozen=True, slots=True)
class KernelLayout:
    """All ranges, sorted by start, not overlapping. Empty when addresses are hidden."""

    ranges: tuple[KernelRange, ...]
    is_hidden: bool
    """True when /proc/kallsyms shows only zeros (kptr_restrict)."""
    generation: int
    """Counts up with every change."""
