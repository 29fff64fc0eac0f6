# SPDX-License-Identifier: Apache-2.0
"""Writes docs/kernels.md: a run replaces what the document says of the kernels it tried and leaves the others."""

import re
from collections.abc import Iterator, Sequence

from tests.kernels.offers import series_key
from tests.kernels.results import Outcome
from tests.kernels.verdict import Run

HEAD = """# Kernels

Written by `make kernels`: each of Debian's kernels that the sources of apt offer is booted under QEMU's emulation, and the tests of the
BPF programs (`tests/bpf`, those marked `shape`) run in it. `tests/kernels/expected.py` says what is expected of each; what is not
expected, a test skipped in silence for one, fails the run. Counts of samples under emulation say nothing about real machines. Supported is
Linux 5.10 and later; a series that the sources of apt do not offer has no row, as 5.10 itself on Debian 12.

| kernel | result | passed | skipped | failed | unwinding | date | guest |
|---|---|---|---|---|---|---|---|
"""
_ROW = re.compile(r"^\| ([\d.]+) \|.*$", re.MULTILINE)
_SECTION = re.compile(r"^## Linux ([\d.]+)$\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def document(before: str, runs: Sequence[tuple[Run, Sequence[str]]]) -> str:
    """The text, made of the one before and of these runs with what was unexpected in each."""
    rows = {found[1]: found[0] for found in _ROW.finditer(before)}
    sections = {found[1]: found[0].strip() for found in _SECTION.finditer(before)}
    for run, unexpected in runs:
        rows[run.series] = _row(run, unexpected)
        sections[run.series] = "\n".join(_section(run, unexpected))
    listed = "".join(f"{rows[series]}\n" for series in sorted(rows, key=series_key))
    return HEAD + listed + "".join(f"\n{sections[series]}\n" for series in sorted(sections, key=series_key))


def _row(run: Run, unexpected: Sequence[str]) -> str:
    unwinding = "unknown" if run.probe is None else "off" if run.probe.unwinding_denial else "on"
    cells = (
        run.series,
        "FAILED" if unexpected else "as expected",
        *(str(run.count(outcome)) for outcome in (Outcome.PASSED, Outcome.SKIPPED, Outcome.FAILED)),
        unwinding,
        f"{run.began:%Y-%m-%d}",
        f"{run.end.seconds:.0f} s",
    )
    return f"| {' | '.join(cells)} |"


def _section(run: Run, unexpected: Sequence[str]) -> Iterator[str]:
    yield f"## Linux {run.series}\n"
    yield f"Package `{run.package}`{f', {_one_line(run.probe.build)}' if run.probe else ''}, {run.began:%Y-%m-%d %H:%M} UTC.\n"
    if run.probe:
        states = ", ".join(f"{name} {state}" for name, state in sorted(run.probe.collectors.items()))
        yield f"- collectors: {states}{''.join(f'; {_one_line(finding)}' for finding in run.probe.findings)}"
        yield f"- unwinding by tables: {f'off, {_one_line(run.probe.unwinding_denial)}' if run.probe.unwinding_denial else 'on'}"
    for name, found in sorted(run.outcomes.items()):
        if found.outcome is Outcome.SKIPPED:
            yield f"- skipped: `{name}`: {_one_line(found.reason)}"
    yield from (f"- **not as expected**: {_one_line(each)}" for each in unexpected)


def _one_line(text: str) -> str:
    """At most a line, that markdown leaves alone."""
    return " ".join(text.split())[:300].replace("|", "\\|").replace("<", "&lt;")
