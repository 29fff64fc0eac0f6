# SPDX-License-Identifier: Apache-2.0
"""Few hosts may differ from the others anyway: what a canary shows must show on its own hosts too, before and after."""

import re

import numpy as np

from server.fleet.deploy import Deploy
from server.fleet.selectors import cpu_selector
from server.profile.calltree import Indices
from server.profile.changed import ChangedFunctions, changed_functions, held_changes
from server.query.diff_query import ENOUGH_HOSTS, DiffAnswer, diff_answer
from server.query.profile_query import ProfileQuery, Question
from server.query.selector import Matcher, Operator, Selector
from server.query.timerange import TimeRange

STRICT = 2.0
"""Intervals from no change that a report asks for, before it names a function."""
_SHOWS = 0.3
"""Of a function's change between the hosts, that it must show on the same hosts."""


def on_same_hosts(query: ProfileQuery, deploy: Deploy, answer: DiffAnswer, found: tuple[ChangedFunctions, Indices]) -> Indices:
    """Give those of the named functions that changed on the same hosts as well; all of them where nothing ran there before.

    Only of a canary with so few hosts on a side that they do not tell by themselves how much hosts differ.
    """
    changed, heads = found
    after = deploy.comparison.after
    if not deploy.comparison.is_canary or min(answer.a.hosts, answer.b.hosts) >= ENOUGH_HOSTS or not heads.size:
        return heads
    first = deploy.first_seen_unix_ns
    before = TimeRange(max(0, first - after.range.length_ns), first)
    sides = Question(_of_hosts(deploy), before), Question(cpu_selector(service=deploy.service, version=after.version), after.range)
    there = diff_answer(query, *sides)
    if not there.diff.a.sum or not there.diff.b.sum:
        return heads
    again = changed_functions(there.diff, there.first_calls())
    held = held_changes(there.diff, again)
    table, own = answer.diff.tree.table, there.diff.tree.table
    rows = {(own.names[name], own.binaries[name]): row for row, name in enumerate(again.name.tolist())}
    kept = []
    for head in heads.tolist():
        row = rows.get((table.names[changed.name[head]], table.binaries[changed.name[head]]))
        if row is None:
            continue
        sign = np.sign(changed.change[head])
        shown = min(sign * again.change[row], sign * held[row])
        if shown >= max(STRICT * again.half[row], _SHOWS * abs(changed.change[head])):
            kept.append(head)
    return np.array(kept, np.intp)


def _of_hosts(deploy: Deploy) -> Selector:
    """The replaced version on the hosts that have the new one now."""
    before = cpu_selector(service=deploy.service, version=deploy.comparison.before.version)
    hosts = Matcher("host", Operator.MATCHES, "|".join(re.escape(host) for host in sorted(deploy.first_by_host)))
    return Selector(before.kind, (*before.matchers, hosts), before.text)
