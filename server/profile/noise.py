# SPDX-License-Identifier: Apache-2.0
"""What is noise: Student's t as a normal deviate, its interval, and Benjamini and Hochberg's choice among many tests.

Whole arrays, no tables. The t to normal conversion is Wallace's (1959): z = (8v + 1) / (8v + 3) sqrt(v ln(1 + t^2 / v)), within 1 % of
z from 3 degrees of freedom on and turned around in closed form; below 3 the interval it gives is too wide, never too narrow.
"""

import numpy as np
import numpy.typing as npt

from server.profile.totals import Mask

F64 = npt.NDArray[np.float64]

ALPHA = 0.05
Z_95 = 1.959963984540054
KNOWN = 1e9
"""Degrees of freedom of a variance that is known and not estimated."""


def normal_deviates(t: F64, freedom: F64) -> F64:
    """Give the normal deviate as improbable as each t >= 0."""
    return (8 * freedom + 1) / (8 * freedom + 3) * np.sqrt(freedom * np.log1p(t * t / freedom))


def t_limits(freedom: F64) -> F64:
    """Give the t that 95 % lie within."""
    z = Z_95 * (8 * freedom + 3) / (8 * freedom + 1)
    return np.sqrt(freedom * np.expm1(z * z / freedom))


def two_sided(z: F64) -> F64:
    """Give the probability of a normal deviate at least this far from 0, either way.

    erfc(z / sqrt 2) by the Chebyshev fit of Numerical Recipes (section 6.2): relative error below 1.2e-7 everywhere.
    """
    x = np.abs(z) / np.sqrt(2)
    t = 1 / (1 + x / 2)
    powers = np.zeros_like(t)
    for factor in (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368):
        powers = powers * t + factor
    probabilities: F64 = t * np.exp(-x * x - 1.26551223 + t * powers)
    return probabilities


def discoveries(probabilities: F64) -> Mask:
    """Choose the tests to believe, so that at most ALPHA of the chosen are wrong on average (Benjamini and Hochberg, 1995)."""
    count = probabilities.size
    ordered = np.sort(probabilities)
    below = np.flatnonzero(ordered <= ALPHA * np.arange(1, count + 1) / max(count, 1))
    return probabilities <= ordered[below[-1]] if below.size else np.zeros(count, np.bool_)
