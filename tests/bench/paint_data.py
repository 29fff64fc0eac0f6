# SPDX-License-Identifier: Apache-2.0
"""One weighed tree as each page wants it: the API's columns, d3-flame-graph's nested objects, speedscope's samples."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from server.http.packed import packed
from server.http.serialise import flamegraph_json
from server.profile.cut import View
from server.profile.totals import WeighedTree
from server.query.profile_query import Profile
from server.query.quality import Losses, Quality, StackShares
from server.query.regex import SearchMode
from server.query.timerange import TimeRange
from server.store.protocol import ColumnInfo
from server.store.push import ValueMerge

Json = dict[str, Any]
Body = bytes | Callable[[], bytes]


def paint_data(weighed: WeighedTree, width_px: int, is_whole: bool) -> Mapping[str, Body]:
    """The three, by path. Ours is what the server would answer, made when it is asked for; with `is_whole` all nodes, made before."""
    answer: Body = packed(_whole(weighed)) if is_whole else lambda: packed(_cut(weighed, width_px))
    return {
        "/data/answer": answer,
        "/data/tree.json": _bytes(_nested(weighed)),
        "/data/speedscope.json": _bytes(_sampled(weighed)),
    }


def _bytes(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _cut(weighed: WeighedTree, width_px: int) -> Json:
    """The work of /api/v1/flamegraph behind the merge."""
    profile = Profile(
        kind="cpu",
        column=ColumnInfo("ns", "ns", ValueMerge.SUM),
        range=TimeRange(0, 10 * 10**9),
        weighed=weighed,
        whole=weighed.sum,
        first_calls=lambda: np.ones(len(weighed.tree), np.bool_),
        samples=weighed.sum,
        covered_s=10.0,
        quality=Quality(Losses(), is_of_hosts=False, stacks=StackShares(), hosts=1, hosts_silent=()),
        idle=None,
        nearest_data_s=None,
    )
    return flamegraph_json(profile, View(width_px), "", SearchMode.TEXT)


def _whole(weighed: WeighedTree) -> Json:
    """As the same, if nothing were cut and there were no limit on nodes."""
    tree, table = weighed.tree, weighed.tree.table
    names = range(1, len(table))
    strings = sorted({"", *table.names, *table.binaries, *table.files})
    numbers = {text: number for number, text in enumerate(strings)}
    columns = {key: np.array([numbers[getattr(table, part)[n]] for n in names], np.int32) for key, part in _TEXTS.items()}
    size = len(tree)
    return {
        "column": "ns",
        "unit": "ns",
        "total": weighed.sum,
        "view_total": weighed.sum,
        "strings": strings,
        "functions": {**columns, "line": np.array(table.lines[1:], np.int32), "code": np.array(table.codes[1:], np.uint8)},
        "nodes": {
            "function": np.array([-2, *(tree.name[1:] - 1)], np.int32),
            "depth": tree.depth.astype(np.int32),
            "start": np.array(_starts(weighed)),
            "total": weighed.total,
            "self": weighed.own,
            "id": tree.identity,
            "trimmed": np.zeros(size, np.int32),
            "matched": np.zeros(size, np.bool_),
            "inlined": np.zeros(size, np.bool_),
        },
        "ancestors": [],
        "search": None,
    }


_TEXTS = {"name": "names", "binary": "binaries", "file": "files"}


def _starts(weighed: WeighedTree) -> list[int]:
    """Left edges: a parent's, plus the totals of the siblings before; self stands to the right of the children."""
    parents, totals = weighed.tree.parent.tolist(), weighed.total.tolist()
    starts, taken = [0] * len(parents), [0] * len(parents)
    for node in range(1, len(parents)):
        parent = parents[node]
        starts[node] = starts[parent] + taken[parent]
        taken[parent] += totals[node]
    return starts


def _nested(weighed: WeighedTree) -> Json:
    names, totals = _names(weighed), weighed.total.tolist()
    nodes: list[Json] = [{"name": name, "value": total, "children": []} for name, total in zip(names, totals, strict=True)]
    for node, parent in enumerate(weighed.tree.parent.tolist()):
        if node:
            nodes[parent]["children"].append(nodes[node])
    return nodes[0]


def _sampled(weighed: WeighedTree) -> Json:
    """See file-format-schema.json of speedscope: a sample for each stack, root first, in the order of the tree."""
    parents, numbers = weighed.tree.parent.tolist(), weighed.tree.name.tolist()
    stacks: list[list[int]] = [[] for _ in parents]
    for node in range(1, len(parents)):
        stacks[node] = [*stacks[parents[node]], numbers[node]]
    at = np.flatnonzero(weighed.own)
    weights = weighed.own[at].tolist()
    profile = {"type": "sampled", "name": "cpu", "unit": "none", "startValue": 0, "endValue": weighed.sum}
    return {
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "shared": {"frames": [{"name": name} for name in weighed.tree.table.names]},
        "profiles": [{**profile, "samples": [stacks[node] for node in at.tolist()], "weights": weights}],
    }


def _names(weighed: WeighedTree) -> list[str]:
    table = weighed.tree.table.names
    return [table[number] for number in weighed.tree.name.tolist()]
