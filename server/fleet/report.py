# SPDX-License-Identifier: Apache-2.0
"""The report of a deploy: how much CPU a host, or a request, takes before and after, and the functions that changed beyond noise.

Both sides are those of the deploy's comparison: old beside new in the same minutes while both run, before and after else. A report is
what JSON can say, because it is kept as such and outlives the profiles.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from server.fleet.deploy import Deploy, Side, Verdict
from server.fleet.deploys import LEAST_TOGETHER_NS
from server.fleet.same_hosts import STRICT, on_same_hosts
from server.fleet.selectors import cpu_selector
from server.fleet.words import verdict_words
from server.profile.by_replicate import function_shares
from server.profile.calltree import Indices
from server.profile.changed import NOTHING, ChangedFunctions, changed_functions, held_changes
from server.profile.diff import Diff, shares
from server.profile.means import ENOUGH_HOSTS, RelativeChange, paired_change, pairs_of, relative_change, replicates_of
from server.profile.nametable import PathFlag
from server.profile.noise import F64
from server.query.diff_query import DiffAnswer, SideAnswer, diff_answer
from server.query.host_query import HostMap, host_map
from server.query.profile_query import ProfileQuery, Question
from server.query.slots import Slots, choose_slots
from server.query.timerange import SECOND_NS, TimeRange

MOST_ROWS = 10
LEAST_NAMED = 0.002
"""Of the service's CPU."""
MOST_EXPLAINED = 8
"""Functions named as explained by another."""
_STEP_NS = 10 * SECOND_NS
_MOST_FINE = 2_000_000
"""Hosts times steps that are worth the finest step."""
_AROUND_NS = 1800 * SECOND_NS
_FINAL_AFTER_NS = 600 * SECOND_NS
"""Nothing more comes when the compared time ended so long ago."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Report:
    """One report, and what it comes to."""

    body: Json
    verdict: Verdict


def missing_words(deploy: Deploy) -> str:
    """Say what a report waits for; "" when there is enough."""
    comparison = deploy.comparison
    for side, which in ((comparison.after, "the new version"), (comparison.before, "the version before")):
        if side.range.length_ns < LEAST_TOGETHER_NS:
            have, need = side.range.length_ns // SECOND_NS, LEAST_TOGETHER_NS // SECOND_NS
            return f"waiting for {need} s of {which}; there are {have} s"
    return ""


def is_final(deploy: Deploy, now_unix_ns: int) -> bool:
    """Whether a report made now will hold."""
    return now_unix_ns - deploy.comparison.after.range.until_unix_ns > _FINAL_AFTER_NS


def make_report(query: ProfileQuery, deploy: Deploy) -> Report | None:
    """Compare the sides; None when one has no data. Raises QueryError, LimitExceeded or Overloaded."""
    before, after = deploy.comparison.before, deploy.comparison.after
    selectors = [cpu_selector(service=deploy.service, version=side.version) for side in (before, after)]
    answer = diff_answer(query, *(Question(s, side.range) for s, side in zip(selectors, (before, after), strict=True)))
    if not answer.diff.a.sum or not answer.diff.b.sum:
        return None
    maps = [host_map(query, s, _slots(deploy, side)) for s, side in zip(selectors, (before, after), strict=True)]
    cpu = _Cpu(maps[0], maps[1], deploy)
    changed = changed_functions(answer.diff, answer.first_calls())
    candidates = named(answer.diff, changed)
    heads = on_same_hosts(query, deploy, answer, (changed, candidates))
    notes = [*answer.notes, *_host_words(candidates.size - heads.size)]
    now = query.now_unix_ns()
    verdict = Verdict(
        words=verdict_words(cpu.measure, cpu.change, heads.size),
        change=cpu.change.change if cpu.change else 0.0,
        is_noise=cpu.change is None or cpu.change.is_noise,
        functions=int(heads.size),
        is_final=is_final(deploy, now),
        made_unix_ns=now,
    )
    body = {
        "sides": [_side_json(side, found) for side, found in zip((before, after), (answer.a, answer.b), strict=True)],
        "cpu": cpu.json(),
        "series": _series_json(query, deploy),
        "rows": _rows(answer, changed, heads[:MOST_ROWS], cpu),
        "functions": {
            "beyond_noise": int(changed.is_beyond.sum()),
            "explained": int((changed.explained_by != NOTHING).sum()),
            "reported": int(heads.size),
            "compared": int(changed.name.size),
        },
        "notes": notes,
    }
    return Report(body, verdict)


def named(diff: Diff, changed: ChangedFunctions) -> Indices:
    """Give the functions a report names, the largest change first: those beyond noise that explain themselves, judged more strictly.

    Of what a comparison marks, one in twenty may be wrong (Benjamini and Hochberg); people and pipelines act on a report unasked. So
    the change must be two intervals, and of a size, also when held against the usual change of unchanged code (the room that others
    made or took, which is itself known with an error no larger than the interval).
    """
    held = held_changes(diff, changed)
    size = np.minimum(np.abs(changed.change), np.abs(held))
    # A place without a name is another one in another build.
    has_name = (np.array(diff.tree.table.flags)[changed.name] & PathFlag.UNNAMED) == 0
    is_named = changed.is_beyond & has_name & (changed.explained_by == NOTHING) & (size >= np.maximum(STRICT * changed.half, LEAST_NAMED))
    heads = np.flatnonzero(is_named & (np.sign(held) == np.sign(changed.change)))
    return heads[np.argsort(-np.abs(changed.change[heads]), kind="stable")]


def _host_words(dropped: int) -> list[str]:
    if not dropped:
        return []
    which = "1 function differs" if dropped == 1 else f"{dropped} functions differ"
    return [f"{which} between these hosts, but not on the same hosts before and after: not named"]


class _Cpu:
    """CPU a host, or a request when rates are known."""

    def __init__(self, before: HostMap, after: HostMap, deploy: Deploy) -> None:
        self._maps = before, after
        self._rates = (deploy.rates.before, deploy.rates.after) if deploy.rates.is_known else (1.0, 1.0)
        self.measure = "CPU per request" if deploy.rates.is_known else "CPU per host"
        self.unit = "s/request" if deploy.rates.is_known else "cores"
        values = [found.rates() / rate for found, rate in zip(self._maps, self._rates, strict=True)]
        self._host_seconds = [
            float((~np.isnan(v)).sum()) * found.slots.step_ns / SECOND_NS for v, found in zip(values, self._maps, strict=True)
        ]
        is_paired = deploy.comparison.is_canary and min(len(found.hosts) for found in self._maps) < ENOUGH_HOSTS
        a, b = pairs_of(values[0], values[1]) if is_paired else replicates_of(values[0], values[1])
        self._replicates = a, b
        self.change: RelativeChange | None = paired_change(a, b) if is_paired else relative_change(a, b)

    def of_side(self, total_ns: int, side: int) -> float:
        """Give what a part of a side's CPU time is a host, or a request."""
        return total_ns / SECOND_NS / max(self._host_seconds[side], 1e-9) / self._rates[side]

    def json(self) -> Json:
        change = self.change
        return {
            "measure": self.measure,
            "unit": self.unit,
            "a": _mean(self._replicates[0]),
            "b": _mean(self._replicates[1]),
            "a_replicates": self._replicates[0].tolist(),
            "b_replicates": self._replicates[1].tolist(),
            "change": change.change if change else None,
            "low": change.low if change else None,
            "high": change.high if change else None,
            "is_noise": change is None or change.is_noise,
        }


def _mean(values: F64) -> float | None:
    return float(values.mean()) if values.size else None


def _side_json(side: Side, found: SideAnswer) -> Json:
    return {
        "version": side.version,
        "from_s": side.range.from_s,
        "until_s": side.range.until_s,
        "hosts": found.hosts,
        "samples": found.samples,
        "replicates": found.replicates,
    }


def _rows(answer: DiffAnswer, changed: ChangedFunctions, heads: Indices, cpu: _Cpu) -> list[Json]:
    diff, first = answer.diff, answer.first_calls()
    names = [int(changed.name[at]) for at in heads]
    bars = [function_shares(diff, side, names, first) for side in (diff.side_a, diff.side_b)]
    return [
        {
            **_row(diff, changed, int(at)),
            "a_per": cpu.of_side(int(changed.a_total[at]), 0),
            "b_per": cpu.of_side(int(changed.b_total[at]), 1),
            "a_bars": bars[0][row].tolist(),
            "b_bars": bars[1][row].tolist(),
        }
        for row, at in enumerate(heads.tolist())
    ]


def _row(diff: Diff, changed: ChangedFunctions, at: int) -> Json:
    table, name = diff.tree.table, int(changed.name[at])
    a_total, b_total = int(changed.a_total[at]), int(changed.b_total[at])
    change, half = float(changed.change[at]), float(changed.half[at])
    explained = np.flatnonzero(changed.explained_by == name)
    explained = explained[np.argsort(-np.abs(changed.change[explained]), kind="stable")]
    a, b = (float(shares(np.array([total]), side.sum)[0]) for total, side in ((a_total, diff.a), (b_total, diff.b)))
    return {
        "name": table.names[name],
        "binary": table.binaries[name],
        "code": int(table.codes[name]),
        "a_share": a,
        "b_share": b,
        "a_total": a_total,
        "b_total": b_total,
        "change": change,
        "low": max(change - half, -1.0),
        "high": min(change + half, 1.0),
        "state": "both" if a_total and b_total else "new" if b_total else "vanished",
        "explains": [table.names[int(changed.name[one])] for one in explained[:MOST_EXPLAINED]],
        "explains_total": int(explained.size),
    }


def _slots(deploy: Deploy, side: Side) -> Slots:
    """As fine as windows are, unless that is too much."""
    steps = -(-side.range.length_ns // _STEP_NS)
    return Slots(side.range, _STEP_NS if steps * max(deploy.hosts_total, 1) <= _MOST_FINE else 60 * SECOND_NS)


def _series_json(query: ProfileQuery, deploy: Deploy) -> Json:
    """CPU per host of both versions around the deploy."""
    before, after = deploy.comparison.before.range, deploy.comparison.after.range
    start = max(0, min(before.from_unix_ns, deploy.first_seen_unix_ns - _AROUND_NS))
    span = TimeRange(start, max(after.until_unix_ns, before.until_unix_ns))
    slots = choose_slots(span, None, 120)
    lines = {}
    for name, version in (("before", deploy.replaced), ("after", deploy.version)):
        rates = host_map(query, cpu_selector(service=deploy.service, version=version), slots).rates()
        there = (~np.isnan(rates)).sum(axis=0)
        sums = np.nansum(rates, axis=0)
        lines[name] = [float(s / n) if n else None for s, n in zip(sums.tolist(), there.tolist(), strict=True)]
    return {"from_s": slots.range.from_s, "until_s": span.until_s, "step_s": slots.step_ns / SECOND_NS, **lines}
