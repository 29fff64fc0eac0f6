# SPDX-License-Identifier: Apache-2.0
"""The relative change from one mean to another, with its interval: Welch's t on the replicates, by the delta method on their ratio.

    c = B / A - 1        V(c) = (B / A)^2 * (V(A) / A^2 + V(B) / B^2)

Replicates are hosts where there are enough of them; of few hosts, stretches of time long enough to be independent (`blocks`). Two sides
that ran in the same minutes shared what happened in them: their stretches are compared pair by pair.
"""

import math
from dataclasses import dataclass

import numpy as np

from server.profile.noise import F64, KNOWN, t_limits

ENOUGH_HOSTS = 4
"""So many on each side tell by themselves how much hosts differ."""
BLOCKS = 8
"""Stretches that the time of a host is cut into, when there are fewer."""


@dataclass(frozen=True, slots=True)
class RelativeChange:
    """0.06 is 6 % more. `low` and `high` end the 95 % interval; both None when it cannot be told, which is noise."""

    change: float
    low: float | None
    high: float | None

    @property
    def is_noise(self) -> bool:
        """The interval holds no change at all."""
        return self.low is None or self.high is None or self.low <= 0.0 <= self.high


def replicates_of(a: F64, b: F64) -> tuple[F64, F64]:
    """Give one mean a host, or several of each when a side has few hosts. Shapes (hosts, slots); NaN where a host was not there."""
    if min(a.shape[0], b.shape[0]) >= ENOUGH_HOSTS:
        return blocks(a, 1), blocks(b, 1)
    return blocks(a, BLOCKS), blocks(b, BLOCKS)


def blocks(values: F64, count: int) -> F64:
    """Give the means of `count` stretches of each row as long as the row is there; fewer of rows that are shorter."""
    means: list[float] = []
    for row in values:
        there = row[~np.isnan(row)]
        means += [float(part.mean()) for part in np.array_split(there, min(count, max(1, there.size))) if part.size]
    return np.array(means)


def pairs_of(a: F64, b: F64) -> tuple[F64, F64]:
    """Give the means of the same stretches of both sides, over all hosts; only of slots in which both were there."""
    sides = [np.nansum(side, axis=0) / np.maximum((~np.isnan(side)).sum(axis=0), 1) for side in (a, b)]
    both = ~np.isnan(a).all(axis=0) & ~np.isnan(b).all(axis=0)
    return blocks(sides[0][None, both], BLOCKS), blocks(sides[1][None, both], BLOCKS)


def paired_change(a: F64, b: F64) -> RelativeChange | None:
    """As `relative_change`, of stretches that belong together: by the spread of the logarithms of their ratios."""
    if a.size != b.size or not a.size or a.mean() <= 0:
        return None
    ratio = float(b.mean() / a.mean())
    is_there = (a > 0) & (b > 0)
    logs = np.log(b[is_there] / a[is_there])
    if logs.size < 2 or not ratio:
        return RelativeChange(ratio - 1, None, None)
    half = float(t_limits(np.array([logs.size - 1.0]))[0]) * float(logs.std(ddof=1)) / logs.size**0.5
    return RelativeChange(ratio - 1, ratio * math.exp(-half) - 1, ratio * math.exp(half) - 1)


def relative_change(a: F64, b: F64) -> RelativeChange | None:
    """Give the change of the means of two samples; None when A has nothing that B could be held against."""
    if not a.size or not b.size or a.mean() <= 0:
        return None
    ratio = float(b.mean() / a.mean())
    if min(a.size, b.size) < 2:
        return RelativeChange(ratio - 1, None, None)
    parts = [float(side.var(ddof=1)) / side.size / max(float(side.mean()), 1e-300) ** 2 for side in (a, b)]
    total = sum(parts)
    weight = sum(part**2 / (side.size - 1) for part, side in zip(parts, (a, b), strict=True))
    freedom = np.array([total**2 / weight if weight else KNOWN])
    half = float(t_limits(freedom)[0]) * ratio * total**0.5
    return RelativeChange(ratio - 1, ratio - 1 - half, ratio - 1 + half)
