# SPDX-License-Identifier: Apache-2.0
"""Verdicts in words: short enough for a list, honest about noise."""

from server.profile.means import RelativeChange

MINUS = "−"
_NO_CHANGE = "no change beyond noise"


def verdict_words(measure: str, change: RelativeChange | None, functions: int) -> str:
    """Say what a deploy changed, for example "CPU per host +6 %: 2 functions"."""
    if change is None or change.is_noise:
        return f"{measure} within noise: {count_of(functions)}" if functions else _NO_CHANGE
    return f"{measure} {percent(change.change)}: {count_of(functions) if functions else 'no single function'}"


def percent(change: float) -> str:
    """Write a relative change: `+6 %`, `−0.4 %`."""
    size = abs(change) * 100
    digits = 0 if size >= 9.5 else 1
    text = f"{size:.{digits}f}".removesuffix(".0")
    return f"{'+' if change > 0 else MINUS if change < 0 else ''}{text} %"


def points(change: float) -> str:
    """Write a change of share in points, hundredths of the whole."""
    sign = "+" if change > 0 else MINUS if change < 0 else ""
    return f"{sign}{abs(change) * 100:.2g}" if abs(change) < 0.01 else f"{sign}{abs(change) * 100:.1f}"


def count_of(functions: int) -> str:
    """Write how many functions."""
    return "1 function" if functions == 1 else f"{functions} functions"
