# SPDX-License-Identifier: Apache-2.0
"""The attempts behind `doctor`: each does for real what a collector will need, and undoes it."""

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

from agent.kernel import bpf
from agent.kernel.loader import load
from agent.kernel.perf_event import open_idle_event
from agent.kernel.spec import ProgramSpec


def real_attempts(spec: ProgramSpec, header_directory: Path) -> dict[str, Callable[[], None]]:
    """The attempts of capabilities.ATTEMPTS on this host, for the program of `spec`."""
    return {"bpf": require_rights, "perf events": open_timer, "program": lambda: load(spec, header_directory).close()}


def has_bcc() -> bool:
    """Whether Debian's bcc can be imported; it is not, for it is large. The package of that name on PyPI has no libbcc."""
    found = importlib.util.find_spec("bcc")
    return found is not None and any((Path(place) / "libbcc.py").exists() for place in found.submodule_search_locations or ())


def require_rights() -> None:
    """Raises KernelError when BPF is not permitted."""
    os.close(bpf.create_hash("probe", 4, 8, 1))


def open_timer() -> None:
    """Raises KernelError when perf events are not to be had."""
    os.close(open_idle_event())
