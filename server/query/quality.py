# SPDX-License-Identifier: Apache-2.0
"""How far an answer can be trusted: what was due and lost, which stacks are not whole, which hosts are silent.

Accounts are of hosts, not of services: what was never stored cannot be told by service, so a service is shown the losses of the
hosts it ran on, and told that they are these. What was stored without its whole stack bears a mark, and is told of its own rows.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from emberwatch.v1 import marks_pb2
from server.profile.nametable import BROKEN, PathFlag
from server.profile.totals import WeighedTree, value_of_leaves, value_with_flags
from server.store.protocol import AccountSlot, AgentInfo

SECOND_NS = 10**9
SILENT_WINDOWS = 3
"""An agent is silent after so many windows without one, and never sooner than after a minute."""
_FIRST_STORED_REASON = 100


@dataclass(frozen=True, slots=True)
class Losses:
    """Accounts added up, in the kind's first column: expected = stored + idle + filtered + sum of lost."""

    expected: int = 0
    stored: int = 0
    idle: int = 0
    filtered: int = 0
    lost: Mapping[str, int] = field(default_factory=dict)
    """By name of the reason, for example MAP_FULL."""

    @property
    def lost_share(self) -> float:
        """Of what was due."""
        return share(sum(self.lost.values()), self.expected)


@dataclass(frozen=True, slots=True)
class StackLosses:
    """What was stored without its whole stack, in the kind's first column."""

    by: Mapping[str, int] = field(default_factory=dict)
    """By name of the reason; a stack that lacks two parts counts with both."""
    share: float = 0.0
    """Of all that was stored; stacks that only lack outermost frames are not in it."""


@dataclass(frozen=True, slots=True)
class StackShares:
    """Shares of the value of an answer, 0 to 1. All 0, and whole 1, when there is no value."""

    truncated: float = 0.0
    unnamed: float = 0.0
    """The innermost frame has no name."""
    unknown: float = 0.0
    """Some frame's place could not be had."""
    unwind_stopped: float = 0.0
    """The outermost frames were not found."""
    kernel_hidden: float = 0.0
    """Kernel frames have no names, because the kernel hides its addresses from the agent (kptr_restrict)."""
    whole: float = 1.0
    """No frame is missing or unknown."""


@dataclass(frozen=True, slots=True)
class Quality:
    """All of it, for one answer."""

    losses: Losses
    is_of_hosts: bool
    """Losses are those of the hosts of the answer, other services included: more than it was asked for."""
    stacks: StackShares
    hosts: int
    """Hosts with series in the answer that are not silent at its end."""
    hosts_silent: tuple[str, ...]
    """Hosts that should be in the answer's end and are not, by name."""
    stack_losses: StackLosses = StackLosses()
    naming: int = 0
    """Binaries in the answer whose names are being made: asked again, it has more of them."""


def share(part: int | float, whole: int | float) -> float:
    """Give part / whole; 0 of nothing."""
    return float(part) / float(whole) if whole else 0.0


def reason_name(reason: int) -> str:
    """Give the name of a LossReason; a number that a newer agent sent stays a number."""
    if reason in marks_pb2.LossReason.values():
        return marks_pb2.LossReason.Name(marks_pb2.LossReason.ValueType(reason)).removeprefix("LOSS_REASON_")
    return f"REASON_{reason}"


def add_accounts(accounts: Iterable[AccountSlot], hosts: Collection[str] | None = None) -> Losses:
    """Add up the accounts of `hosts`, or of all."""
    sums = [0, 0, 0, 0]
    reasons: dict[int, int] = {}
    for account in accounts:
        if hosts is not None and account.host not in hosts:
            continue
        for i, value in enumerate((account.expected, account.stored, account.idle, account.filtered)):
            sums[i] += value
        for reason, value in account.lost.items():
            reasons[reason] = reasons.get(reason, 0) + value
    return Losses(sums[0], sums[1], sums[2], sums[3], {reason_name(r): v for r, v in sorted(reasons.items()) if r < _FIRST_STORED_REASON})


def stack_shares(weighed: WeighedTree) -> StackShares:
    """Measure the stacks of a tree."""
    total = weighed.sum
    if not total:
        return StackShares()
    is_unnamed = (np.array(weighed.tree.table.flags) & PathFlag.UNNAMED) != 0
    return StackShares(
        truncated=share(value_with_flags(weighed, PathFlag.TRUNCATED), total),
        unnamed=share(value_of_leaves(weighed, is_unnamed), total),
        unknown=share(value_with_flags(weighed, PathFlag.UNKNOWN), total),
        unwind_stopped=share(value_with_flags(weighed, PathFlag.UNWIND_STOPPED), total),
        kernel_hidden=share(value_with_flags(weighed, PathFlag.KERNEL_HIDDEN), total),
        whole=1.0 - share(value_with_flags(weighed, BROKEN), total),
    )


def is_silent(agent: AgentInfo, at_unix_ns: int) -> bool:
    """Tell whether an agent had no window lately, seen from `at_unix_ns`."""
    grace_s = max(60, SILENT_WINDOWS * agent.window_s)
    return agent.last_window_end_unix_ns < at_unix_ns - grace_s * SECOND_NS
