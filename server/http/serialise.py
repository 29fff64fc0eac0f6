# SPDX-License-Identifier: Apache-2.0
"""Answers as JSON: columns, and only what can be seen. Times are unix seconds, shares 0 to 1; long columns are arrays (see packed.py)."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from server.fleet.deploy import Deploy
from server.profile.cut import TRIMMED, Cut, View, cut
from server.profile.names import CodeKind
from server.profile.nametable import NameTable
from server.profile.nametree import NameTree
from server.profile.search import match_names, value_of_matches
from server.profile.totals import Mask, WeighedTree
from server.query.fleet_query import AgentRow, Fleet
from server.query.peers_query import ADDRESS_FLAG
from server.query.profile_query import Profile
from server.query.quality import Quality, share
from server.query.regex import SearchMode, search
from server.query.table_query import Table
from server.query.timeline_query import Line
from server.query.timerange import SECOND_NS

Json = dict[str, Any]
_Value = TypeVar("_Value", int, str)
ROOT_FUNCTION = -2
ROOT_NAME = "all"


def flamegraph_json(profile: Profile, view: View, text: str, mode: SearchMode) -> Json:
    """The graph under view.root."""
    weighed = profile.weighed
    matched: Mask | None = match_names(weighed.tree.table, search(text, mode)) if text else None
    shown = cut(weighed, view, matched)
    view_total = int(weighed.total[view.root])
    functions, strings, numbers = function_columns(weighed.tree.table, shown)
    matched_total = value_of_matches(weighed, matched, view.root) if matched is not None else 0
    return {
        **_head(profile),
        "view_total": view_total,
        "strings": strings,
        "functions": functions,
        "nodes": {**node_columns(weighed.tree, shown), "function": numbers},
        "ancestors": [above for _, above in view_ancestors(weighed, view.root)],
        "search": {"text": text, "matched_total": matched_total, "share": share(matched_total, view_total)} if text else None,
        "quality": quality_json(profile.quality),
        "trimmed": {"frames": shown.trimmed_frames, "share": share(shown.trimmed_value, view_total)},
        "idle": _idle_json(profile),
        "nearest_data_s": profile.nearest_data_s,
    }


def table_json(profile: Profile, table: Table) -> Json:
    """The table of functions."""
    names, total = profile.weighed.tree.table, profile.weighed.sum
    rows = [
        {
            "name": names.names[n],
            "binary": names.binaries[n],
            "file": names.files[n],
            "line": names.lines[n],
            "code": names.codes[n],
            "builds": names.builds.get(n, ()),
            "self": own,
            "total": value,
            "self_share": share(own, total),
            "total_share": share(value, total),
        }
        for n, own, value in zip(table.name.tolist(), table.own.tolist(), table.total.tolist(), strict=True)
    ]
    return {
        **_head(profile),
        "rows": rows,
        "rows_total": table.rows_total,
        "quality": quality_json(profile.quality),
        "idle": _idle_json(profile),
        "nearest_data_s": profile.nearest_data_s,
    }


def _idle_json(profile: Profile) -> Json | None:
    """How much waits for work, whether it is shown or not."""
    idle = profile.idle
    if idle is None:
        return None
    return {"total": idle.total, "idle": idle.idle, "share": share(idle.idle, idle.total), "by": dict(idle.by)}


def quality_json(quality: Quality) -> Json:
    """The loss strip."""
    losses, stacks = quality.losses, quality.stacks
    return {
        "expected": losses.expected,
        "stored": losses.stored,
        "idle": losses.idle,
        "filtered": losses.filtered,
        "lost": dict(losses.lost),
        "lost_share": losses.lost_share,
        "is_of_hosts": quality.is_of_hosts,
        "stack_lost": dict(quality.stack_losses.by),
        "stack_lost_share": quality.stack_losses.share,
        "truncated_share": stacks.truncated,
        "unnamed_share": stacks.unnamed,
        "unknown_share": stacks.unknown,
        "unwind_stopped_share": stacks.unwind_stopped,
        "kernel_hidden_share": stacks.kernel_hidden,
        "whole_share": stacks.whole,
        "hosts": quality.hosts,
        "hosts_silent": list(quality.hosts_silent),
        "naming": quality.naming,
    }


def line_json(line: Line) -> Json:
    """Values over time."""
    return {
        "kind": line.kind,
        "column": line.column.name,
        "unit": line.column.unit,
        "from_s": line.slots.range.from_s,
        "until_s": line.slots.range.until_s,
        "step_s": line.slots.step_ns / SECOND_NS,
        "times_s": line.slots.starts_s(),
        "values": line.values,
        "by": None,
        "loss": line.loss,
    }


def fleet_json(fleet: Fleet, deploys: Mapping[str, Deploy]) -> Json:
    """The table of services. `deploys` by service: the last ones, where it is known what they changed."""
    rows = [
        {
            "service": row.service,
            "cpu_ns": row.cpu_ns,
            "cores": row.cores,
            "cores_now": row.cores_now,
            "share": row.share,
            "spark": row.spark,
            "version": row.version,
            "version_since_s": row.version_since_unix_ns / SECOND_NS,
            "versions": row.versions,
            "hosts": row.hosts,
            "samples": row.samples,
            "lost_share": row.losses.lost_share,
            "whole_share": row.whole_share,
            "unnamed_share": None,
            "deploy": _change_json(deploys.get(row.service)),
        }
        for row in fleet.services
    ]
    cpu_ns = sum(row.cpu_ns for row in fleet.services)
    return {
        "from_s": fleet.slots.range.from_s,
        "until_s": fleet.slots.range.until_s,
        "step_s": fleet.slots.step_ns / SECOND_NS,
        "services": rows,
        "totals": {
            "cores": share(cpu_ns, fleet.covered_ns),
            "cores_now": fleet.cores_now,
            "hosts": fleet.hosts,
            "samples": sum(row.samples for row in fleet.services),
            "cpu_ns": cpu_ns,
        },
        "agents": {"total": fleet.agents, "silent": fleet.agents_silent},
    }


def _change_json(deploy: Deploy | None) -> Json | None:
    if deploy is None or deploy.verdict is None:
        return None
    return {"id": deploy.deploy_id, "words": deploy.verdict.words, "change": deploy.verdict.change, "is_noise": deploy.verdict.is_noise}


def agent_json(row: AgentRow) -> Json:
    """One agent."""
    info = row.info
    return {
        "host": info.host,
        "agent_id": info.agent_id.hex(),
        "version": info.agent_version,
        "kernel": info.kernel_release,
        "cpus": info.online_cpus,
        "rate_hz": info.rate_hz,
        "window_s": info.window_s,
        "first_seen_s": info.first_seen_unix_ns / SECOND_NS,
        "last_seen_s": info.last_seen_unix_ns / SECOND_NS,
        "is_silent": row.is_silent,
        "lost": dict(row.losses.lost),
        "lost_share": row.losses.lost_share,
        "cpu_share": row.cpu_share,
        "bpf_share": row.bpf_share,
        "rss_bytes": row.rss_bytes,
        "map_bytes": row.map_bytes,
        "flags": [flag for flag in info.flags if not flag.startswith(ADDRESS_FLAG)],
        "addresses": [flag.removeprefix(ADDRESS_FLAG) for flag in info.flags if flag.startswith(ADDRESS_FLAG)],
    }


def _head(profile: Profile) -> Json:
    return {
        "kind": profile.kind,
        "column": profile.column.name,
        "unit": profile.column.unit,
        "from_s": profile.range.from_s,
        "until_s": profile.range.until_s,
        "seconds": profile.covered_s,
        "total": profile.weighed.sum,
        "whole_total": profile.whole,
        "samples": profile.samples,
    }


def function_columns(table: NameTable, shown: Cut) -> tuple[Json, list[str], npt.NDArray[np.int32]]:
    """Give the functions of the shown nodes as columns of string numbers, the strings, and the function of each node."""
    distinct, place = np.unique(shown.name, return_inverse=True)
    chosen = distinct[distinct > 0].tolist()  # without the root (0) and trimmed children (-1)
    texts = {"name": _chosen(table.names, chosen), "binary": _chosen(table.binaries, chosen), "file": _chosen(table.files, chosen)}
    builds = [table.builds.get(n, ()) for n in chosen]
    strings = list(dict.fromkeys(chain([""], *texts.values(), chain.from_iterable(builds))))
    number = {text: at for at, text in enumerate(strings)}
    columns = {
        **{key: np.fromiter(map(number.__getitem__, column), np.int32, len(chosen)) for key, column in texts.items()},
        "line": np.array(_chosen(table.lines, chosen), np.int32),
        "code": np.array(_chosen(table.codes, chosen), np.uint8),
        "builds": [[number[build] for build in some] for some in builds],
    }
    numbers = np.arange(distinct.size, dtype=np.int32) - (distinct.size - len(chosen))
    numbers[distinct == 0], numbers[distinct == TRIMMED] = ROOT_FUNCTION, TRIMMED
    return columns, strings, numbers[place]


def _chosen(column: list[_Value], rows: Sequence[int]) -> list[_Value]:
    return list(map(column.__getitem__, rows))


def node_columns(tree: NameTree, shown: Cut) -> Json:
    """Give the columns of the shown nodes, but for their functions; what was trimmed is no inlined call."""
    return {
        "depth": shown.depth.astype(np.int32),
        "start": shown.start,
        "total": shown.total,
        "self": shown.own,
        "id": shown.identity,
        "trimmed": shown.hidden.astype(np.int32),
        "matched": shown.matched,
        "inlined": tree.inlined[shown.node] & (shown.name != TRIMMED),
    }


def view_ancestors(weighed: WeighedTree, root: int) -> list[tuple[int, Json]]:
    """Give the nodes above the root of a view, outermost first, each with what is said of it."""
    tree = weighed.tree
    above: list[tuple[int, Json]] = []
    node = root
    while node:
        node = int(tree.parent[node])
        name = tree.table.names[tree.name[node]] if node else ROOT_NAME
        binary = tree.table.binaries[tree.name[node]] if node else ""
        code = tree.table.codes[tree.name[node]] if node else int(CodeKind.MARK)
        said = {"name": name, "binary": binary, "code": code, "id": int(tree.identity[node]), "total": int(weighed.total[node])}
        above.append((node, said))
    above.reverse()
    return above
