# SPDX-License-Identifier: Apache-2.0
"""What the agent says of itself and of its host with every window."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent import __version__
from agent.config import Settings
from agent.records.kernel_layout import KernelLayout
from agent.records.limit import Limit
from emberwatch.v1 import batch_pb2 as pb

_REASON_CHARACTERS = 160


class SpoolFacts(Protocol):
    """The part of the spool's state that health looks at."""

    @property
    def is_memory_only(self) -> bool:
        """The disk refused the last window."""
        ...


@dataclass(frozen=True, slots=True)
class KindFacts:
    """Which kinds are not as they should be."""

    refused: Mapping[str, str] = field(default_factory=dict)
    """Wanted and not running: why."""
    limited: Mapping[str, Limit] = field(default_factory=dict)
    """Not seeing everything, to spare the host."""

    def flags(self) -> list[str]:
        """`kind_off:KIND:why`, `kind_limited:KIND:percent` and, of a kind that counts everything, `kind_timed:KIND:percent`."""
        off = [f"kind_off:{kind}:{_first_line(reason)}" for kind, reason in self.refused.items()]
        return off + [_limit_flag(kind, limit) for kind, limit in self.limited.items()]


@dataclass(frozen=True, slots=True)
class Shortfalls:
    """What there was no room or no time for, and how unwinding by tables stands."""

    put_off: int = 0
    """New processes of the window that there was no budget to read at once; those that ended unread have no stacks of user code."""

    denial: str = ""
    """Why this kernel does without; empty when it does not."""
    evicted: int = 0
    """Tables that gave way to others since the start, for want of room."""
    missing: int = 0
    """Files that should have a table and have none."""
    waiting: int = 0
    """Tables that are used and find no room."""
    rules_refused: int = 0
    """Rules of tables that found no number since the start: where they hold, stacks end."""
    left_out: int = 0
    """Processes that map too much for the room there is: their files' tables are found as they are walked, JIT code is not."""

    def flags(self) -> list[str]:
        """`processes_put_off:N`, `unwind_off:why`, `unwind_tables_evicted:N`, `unwind_tables_missing:N`, `unwind_tables_waiting:N`,
        `unwind_rules_refused:N`, `unwind_left_out:N`."""
        off = [f"unwind_off:{_first_line(self.denial)}"] if self.denial else []
        counts = {
            "processes_put_off": self.put_off,
            "unwind_tables_evicted": self.evicted,
            "unwind_tables_missing": self.missing,
            "unwind_tables_waiting": self.waiting,
            "unwind_rules_refused": self.rules_refused,
            "unwind_left_out": self.left_out,
        }
        return off + [f"{name}:{count}" for name, count in counts.items() if count]


def host_facts(
    settings: Settings, layout: KernelLayout, spool: SpoolFacts, kinds: KindFacts, lacking: Shortfalls = Shortfalls()
) -> pb.HostFacts:
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
        flags=sorted([*(name for name, is_set in flags.items() if is_set), *kinds.flags(), *lacking.flags()]),
        window_s=settings.window_s,
    )


def _limit_flag(kind: str, limit: Limit) -> str:
    return f"kind_limited:{kind}:{limit.seen * 100:.0f}" if limit.seen < 1 else f"kind_timed:{kind}:{limit.timed * 100:.0f}"


def _first_line(reason: str) -> str:
    """As much of a reason as fits into a flag."""
    return reason.partition("\n")[0][:_REASON_CHARACTERS]
