# SPDX-License-Identifier: Apache-2.0
"""What the agent says of itself and of its host with every window."""

import os
from typing import Protocol

from agent import __version__
from agent.config import Settings
from agent.records.kernel_layout import KernelLayout
from emberwatch.v1 import batch_pb2 as pb


class SpoolFacts(Protocol):
    """The part of the spool's state that health looks at."""

    @property
    def is_memory_only(self) -> bool:
        """The disk refused the last window."""
        ...


def host_facts(settings: Settings, layout: KernelLayout, spool: SpoolFacts) -> pb.HostFacts:
    """Host, agent and health; flags are sorted."""
    flags = {
        "kallsyms_hidden": layout.is_hidden,
        "spool_memory_only": spool.is_memory_only,
        "limited": bool(settings.pid or settings.cgroup),
    }
    return pb.HostFacts(
        host=settings.host_name(),
        kernel_release=os.uname().release.encode(),
        online_cpus=os.sysconf("SC_NPROCESSORS_ONLN"),
        agent_version=__version__,
        rate_hz=settings.rate_hz,
        flags=sorted(name for name, is_set in flags.items() if is_set),
        window_s=settings.window_s,
    )
