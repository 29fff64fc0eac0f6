# SPDX-License-Identifier: Apache-2.0
"""All kinds beside cpu: a line for each group. How to add one stands in bpf/README.md."""

from agent.profilers import holds, locks, syscall, tcp, waits
from agent.profilers.event_host import Group

GROUPS: tuple[Group, ...] = (waits.GROUP, locks.GROUP, syscall.GROUP, tcp.GROUP, holds.GROUP)

EVENT_KINDS: tuple[str, ...] = tuple(kind for group in GROUPS for kind in group.kinds)
