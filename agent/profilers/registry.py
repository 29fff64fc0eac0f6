# SPDX-License-Identifier: Apache-2.0
"""All kinds beside cpu: a line for each group. How to add one stands in bpf/README.md."""

from agent.profilers.event_host import Group
from agent.profilers.syscall import GROUP as SYSCALL
from agent.profilers.tcp import GROUP as TCP
from agent.profilers.waits import GROUP as WAITS

GROUPS: tuple[Group, ...] = (WAITS, SYSCALL, TCP)

EVENT_KINDS: tuple[str, ...] = tuple(kind for group in GROUPS for kind in group.kinds)
