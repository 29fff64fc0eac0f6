# SPDX-License-Identifier: Apache-2.0
"""`emberwatch-agent doctor`: what this kernel offers and lacks, collector by collector, in words."""

import json
import os
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from agent.kernel.attempts import has_bcc, real_attempts
from agent.kernel.capabilities import Capability, CollectorReport, HostView, State, capabilities, examine
from agent.kernel.release import running_release
from agent.profilers.cpu import SPEC, CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.registry import EVENT_KINDS
from agent.profilers.suite import Suite
from agent.records.limit import Limit
from agent.unwind.cache import kept_tables

_SIGNS = {State.WORKS: "ok", State.LIMITED: "limited", State.MISSING: "missing"}
_NEEDED = "cpu"
_LOOK_S = 0.8
"""Three looks of a breaker."""


def report(as_json: bool, unwind_directory: Path | None = None) -> tuple[bool, str]:
    """Whether on-CPU works here, and the findings as text or as JSON. Loads and unloads the real program to know.

    `unwind_directory` is where the agent of this host keeps its unwind tables.
    """
    with tempfile.TemporaryDirectory(prefix="emberwatch-doctor-") as headers:
        collectors, everything = look(Path(headers))
    everything += (_unwind_tables(unwind_directory),) if unwind_directory is not None else ()
    works = _works(collectors)
    if as_json:
        return works, json.dumps(
            {"works": works, "collectors": [_facts(each) for each in collectors], "host": [_fact(each) for each in everything]}, indent=2
        )
    return works, _text(collectors, everything, works)


def look(headers: Path) -> tuple[tuple[CollectorReport, ...], tuple[Capability, ...]]:
    """What every collector can do on this host, those of event kinds too, and all that was looked at. `headers` is an empty directory."""
    host = HostView(running_release(), os.uname().machine, real_attempts(SPEC, headers))
    collectors, everything = examine(host, has_bcc), capabilities(host, has_bcc)
    return collectors + (_event_kinds(headers) if _works(collectors) else ()), everything


def _works(collectors: Sequence[CollectorReport]) -> bool:
    return any(each.name == _NEEDED and each.state is not State.MISSING for each in collectors)


def _unwind_tables(directory: Path) -> Capability:
    """What is kept of earlier runs; files that should have a table and have none are named by reason."""
    kept = kept_tables(directory)
    misses = ", ".join(f"{count} {miss.name.lower().replace('_', ' ')}" for miss, count in sorted(kept.misses.items()))
    detail = f"{kept.tables} kept in {directory}, {kept.size_bytes >> 20} MiB; files without one: {misses or 'none'}"
    return Capability("unwind tables", State.WORKS, detail)


def _event_kinds(headers: Path) -> tuple[CollectorReport, ...]:
    """Starts and ends all profilers: what each event kind needs is tried, not guessed, and so is whether this host is too busy for it."""
    with closing(Suite.start(CpuSettings(header_directory=headers), EventSettings())) as suite:
        _run(suite, _LOOK_S)
        suite.drain()
        refusals, limited = suite.refusals, suite.limited()
    return tuple(
        CollectorReport(kind, State.MISSING, (Capability("program", State.MISSING, refusals[kind]),))
        if kind in refusals
        else CollectorReport(kind, State.WORKS, (_limited(limited[kind]),) if kind in limited else ())
        for kind in EVENT_KINDS
    )


def _run(suite: Suite, seconds: float) -> None:
    """As the agent does between two windows."""
    until_s = time.monotonic() + seconds
    while (left_s := until_s - time.monotonic()) > 0:
        wait_s = suite.tick()
        time.sleep(left_s if wait_s is None else min(left_s, wait_s))


def _limited(limit: Limit) -> Capability:
    if limit.seen < 1:
        detail = f"so much happens here now that {limit.seen:.0%} of it is seen, to spare the host; counts and times are scaled"
    else:
        detail = f"so much happens here now that times are taken for {limit.timed:.0%} of the time, to spare the host; all is counted"
    return Capability("limit", State.LIMITED, detail, "raise events_per_s, or calls_cpu_percent for system calls, to see more")


def _text(collectors: Sequence[CollectorReport], everything: Sequence[Capability], works: bool) -> str:
    lines = ["Collectors"]
    for each in collectors:
        lines.append(f"  {_SIGNS[each.state]:<8} {each.name}")
        for finding in each.findings:
            lines += [f"           {finding.name}: {finding.detail}", *([f"           -> {finding.remedy}"] if finding.remedy else [])]
    lines += ["", "This host"]
    for fact in everything:
        lines.append(f"  {_SIGNS[fact.state]:<8} {fact.name}: {fact.detail}")
        if fact.remedy and fact.state is not State.WORKS:
            lines.append(f"           -> {fact.remedy}")
    lines += ["", "On-CPU profiles work here." if works else "On-CPU profiles do not work here: see what is missing above."]
    return "\n".join(lines)


def _fact(fact: Capability) -> dict[str, str]:
    return {"name": fact.name, "state": fact.state.value, "detail": fact.detail, "remedy": fact.remedy}


def _facts(each: CollectorReport) -> dict[str, object]:
    return {"name": each.name, "state": each.state.value, "findings": [_fact(finding) for finding in each.findings]}
