# SPDX-License-Identifier: Apache-2.0
"""Lines of the benchmark's answer: what was measured, ours, the peer's, their ratio, and whether the target was met."""

from dataclasses import dataclass

_COLUMNS = ((72, "<"), (16, ">"), (22, ">"), (8, ">"), (12, ">"), (7, ">"))
_HEAD = ("what", "ours", "peer", "ratio", "target", "")


@dataclass(frozen=True, slots=True)
class Line:
    """One figure. `is_met` is None where there is no target: the figure is told, not judged."""

    what: str
    ours: str
    peer: str = ""
    ratio: str = ""
    target: str = ""
    is_met: bool | None = None


@dataclass(frozen=True, slots=True)
class Unit:
    """How to write a number: `value / divisor`, so many decimals, then the name."""

    name: str
    divisor: float = 1.0
    decimals: int = 2

    def text(self, value: float) -> str:
        """Write a value."""
        return f"{value / self.divisor:,.{self.decimals}f} {self.name}"


MS = Unit("ms", 1e-3, 1)
SECONDS = Unit("s", 1, 2)
NS_PER_ROW = Unit("ns/row", 1e-9, 2)
BYTES_PER_ROW = Unit("B/row", 1, 3)
MIB = Unit("MiB", 1 << 20, 1)
MILLION_ROWS = Unit("M rows/s", 1e6, 1)
PER_CENT = Unit("%", 0.01, 3)


def told(what: str, value: float, unit: Unit, peer: str = "") -> Line:
    """A figure without a target."""
    return Line(what, unit.text(value), peer)


def bounded(what: str, value: float, unit: Unit, most: float) -> Line:
    """A figure that must not be above `most`."""
    return Line(what, unit.text(value), "", "", f"<= {_short(unit, most)}", value <= most)


def reached(what: str, value: float, unit: Unit, least: float) -> Line:
    """A figure that must not be below `least`."""
    return Line(what, unit.text(value), "", "", f">= {_short(unit, least)}", value >= least)


def against(what: str, ours: float, peer: tuple[str, float], unit: Unit, most: float | None) -> Line:
    """Ours beside a peer's, smaller is better; the ratio must not be above `most`."""
    name, theirs = peer
    ratio = ours / theirs
    shown = f"{ratio:.2f}x" if ratio > 0.5 else f"1/{1 / ratio:.1f}"
    if most is None:
        return Line(what, unit.text(ours), f"{name} {unit.text(theirs)}", shown)
    target = f"<= {most:g}x" if most >= 1 else f"<= 1/{1 / most:g}"
    return Line(what, unit.text(ours), f"{name} {unit.text(theirs)}", shown, target, ratio <= most)


def head() -> str:
    """The line above all lines."""
    return _row(_HEAD)


def text_of(line: Line) -> str:
    """A line of the table."""
    verdict = "" if line.is_met is None else "met" if line.is_met else "MISSED"
    return _row((line.what, line.ours, line.peer, line.ratio, line.target, verdict))


def _row(cells: tuple[str, ...]) -> str:
    return " ".join(f"{cell:{align}{width}}" for cell, (width, align) in zip(cells, _COLUMNS, strict=True)).rstrip()


def _short(unit: Unit, value: float) -> str:
    return f"{value / unit.divisor:g} {unit.name}"
