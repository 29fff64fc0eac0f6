# SPDX-License-Identifier: Apache-2.0
"""What is loaded and what comes of it: programs and maps as descriptors of this process."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class ProgramType(Enum):
    """Type of a BPF program, by its name in BCC."""

    PERF_EVENT = "PERF_EVENT"
    TRACEPOINT = "TRACEPOINT"
    RAW_TRACEPOINT = "RAW_TRACEPOINT"
    ITERATOR = "TRACING"
    """Named bpf_iter__<what it goes through>."""


class Hazard(Enum):
    """What a program does that hangs some kernels; see denylist.py."""

    READ_USER_IN_INTERRUPT = "bpf_probe_read_user in an interrupt"
    DISABLE_EVENT_IN_TIMER = "a perf event disabled from inside its timer"


@dataclass(frozen=True, slots=True)
class ProgramSpec:
    """One source and what is wanted of it."""

    source: str
    """Name of the file in bpf/."""
    functions: Mapping[str, ProgramType]
    maps: tuple[str, ...]
    hazards: frozenset[Hazard] = frozenset()
    optional: Mapping[str, ProgramType] = field(default_factory=dict)
    """Functions that are left out when this kernel does not take them."""
    defines: Mapping[str, int] = field(default_factory=dict)
    """Bounds of maps that depend on the host."""


@dataclass(frozen=True, slots=True)
class LoadedProgram:
    """Descriptors by name. They are this process's own: the child that loaded them is gone."""

    programs: Mapping[str, int]
    maps: Mapping[str, int]
    loader_peak_bytes: int
    """Most memory the loader child ever held."""
    refusals: Mapping[str, str] = field(default_factory=dict)
    """Sources that are not there, and why: their functions and maps are not either."""

    def close(self) -> None:
        for descriptor in (*self.programs.values(), *self.maps.values()):
            os.close(descriptor)
