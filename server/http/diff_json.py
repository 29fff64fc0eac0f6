# SPDX-License-Identifier: Apache-2.0
"""Diffs as JSON: the columns of a graph with those of both sides beside them, and the table of changed functions."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from server.http.serialise import Json, function_columns, node_columns, quality_json, view_ancestors
from server.profile.changed import NOTHING, ChangedFunctions, changed_functions
from server.profile.cut import TRIMMED, Cut, View, cut
from server.profile.diff import Diff, Shape, shaped, shares
from server.profile.search import match_names, value_of_matches
from server.profile.totals import Mask, WeighedTree
from server.query.diff_query import DiffAnswer, SideAnswer
from server.query.quality import share
from server.query.regex import SearchMode, search

F64 = npt.NDArray[np.float64]


class DiffSort(StrEnum):
    """Which rows come first."""

    CHANGE = "change"
    """The largest change, either way; those beyond noise before the others."""
    A = "a"
    B = "b"


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched; nothing when the text is empty."""

    text: str = ""
    mode: SearchMode = SearchMode.TEXT


def diff_json(answer: DiffAnswer, view: View, shape: Shape, wanted: Search) -> Json:
    """The graph under view.root, in a shape."""
    diff = answer.diff
    weighed = shaped(diff, shape)
    matched: Mask | None = match_names(diff.tree.table, search(wanted.text, wanted.mode)) if wanted.text else None
    shown = cut(weighed, view, matched)
    functions, strings, numbers = function_columns(diff.tree.table, shown)
    view_total = int(weighed.total[view.root])
    changes = diff.changes()
    return {
        **_head(answer),
        "shape": shape,
        "total": weighed.sum,
        "view_total": view_total,
        "strings": strings,
        "functions": functions,
        "nodes": {**node_columns(diff.tree, shown), "function": numbers, **_side_columns(diff, shown)},
        "ancestors": [{**above, **_of_sides(diff, node)} for node, above in view_ancestors(weighed, view.root)],
        "search": _search_json(diff, weighed, (matched, view.root), wanted.text) if matched is not None else None,
        "trimmed": {"frames": shown.trimmed_frames, "share": share(shown.trimmed_value, view_total)},
        "changed": {"beyond_noise": int(diff.spread.is_beyond.sum()), "frames": int(np.count_nonzero(changes))},
        "stacks": {
            "new": int(np.count_nonzero((diff.b.own > 0) & (diff.a.own == 0))),
            "vanished": int(np.count_nonzero((diff.a.own > 0) & (diff.b.own == 0))),
        },
    }


def diff_table_json(answer: DiffAnswer, sort: DiffSort, limit: int, wanted: Search) -> Json:
    """The table of functions."""
    diff = answer.diff
    table, values = diff.tree.table, changed_functions(diff, answer.first_calls())
    order = _order(values, sort)
    if wanted.text:
        order = order[match_names(table, search(wanted.text, wanted.mode))[values.name[order]]]
    rows = [_row(diff, values, at) | _per(answer, values, at) for at in order[:limit].tolist()]
    return {
        **_head(answer),
        "rows": rows,
        "rows_total": int(order.size),
        "changed": {
            "beyond_noise": int(values.is_beyond.sum()),
            "frames": int(np.count_nonzero(values.change)),
            "explained": int((values.explained_by != NOTHING).sum()),
        },
    }


def _head(answer: DiffAnswer) -> Json:
    return {
        "kind": answer.kind,
        "column": answer.column.name,
        "unit": answer.column.unit,
        "a": _side_json(answer.a, answer.diff.a.sum),
        "b": _side_json(answer.b, answer.diff.b.sum),
        "notes": list(answer.notes),
    }


def _side_json(side: SideAnswer, total: int) -> Json:
    return {
        "query": side.text,
        "from_s": side.range.from_s if side.range else None,
        "until_s": side.range.until_s if side.range else None,
        "seconds": side.covered_s,
        "total": total,
        "samples": side.samples,
        "hosts": side.hosts,
        "replicates": side.replicates,
        "is_empty": total == 0,
        "per": {"unit": side.per[0], "count": side.per[1], "total": total / side.per[1]} if side.per else None,
        "quality": quality_json(side.quality) if side.quality else None,
    }


def _side_columns(diff: Diff, shown: Cut) -> Json:
    """The sides of each node; of a trimmed child, of what it hides: no interval, and noise when all of that is."""
    hidden = _Hidden(diff, shown)
    beyond = diff.spread.rows[diff.spread.is_beyond]
    a, b = (hidden.of(side.total[shown.node], side.own[shown.node]) for side in (diff.a, diff.b))
    a_share, b_share = shares(a, diff.a.sum), shares(b, diff.b.sum)
    change, half = b_share - a_share, diff.half_widths(shown.node)
    is_beyond = np.isin(shown.node, beyond).astype(np.int64)
    within = np.searchsorted(beyond, diff.tree.end[shown.node]) - np.searchsorted(beyond, shown.node)
    is_beyond = np.where(hidden.is_trimmed, hidden.of(within, is_beyond), is_beyond)
    return {
        "a_total": a,
        "b_total": b,
        "a_share": a_share,
        "b_share": b_share,
        "change": change,
        "low": _with_none(np.maximum(change - half, -1.0), hidden.is_trimmed),
        "high": _with_none(np.minimum(change + half, 1.0), hidden.is_trimmed),
        "is_noise": is_beyond == 0,
    }


class _Hidden:
    """What trimmed children hide: what their parent has, less its own and less that of its children that are shown."""

    def __init__(self, diff: Diff, shown: Cut) -> None:
        self.is_trimmed = shown.name == TRIMMED
        self._kept = np.flatnonzero(~self.is_trimmed)
        nodes = shown.node[self._kept]
        self._parent = self._kept[np.searchsorted(nodes, diff.tree.parent[nodes[1:]])]
        self._of = self._kept[np.searchsorted(nodes, shown.node[self.is_trimmed])]

    def of(self, total: npt.NDArray[np.int64], own: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Give the column, by shown node: `total` as it is, and for trimmed children what they hide of it."""
        rest = total - own
        np.subtract.at(rest, self._parent, total[self._kept[1:]])
        column = total.copy()
        column[self.is_trimmed] = rest[self._of]
        return column


def _with_none(values: F64, is_absent: Mask) -> list[float | None]:
    return [None if absent else value for value, absent in zip(values.tolist(), is_absent.tolist(), strict=True)]


def _of_sides(diff: Diff, node: int) -> Json:
    a, b = share(int(diff.a.total[node]), diff.a.sum), share(int(diff.b.total[node]), diff.b.sum)
    return {"a_share": a, "b_share": b, "change": b - a}


def _search_json(diff: Diff, weighed: WeighedTree, matched: tuple[Mask, int], text: str) -> Json:
    names, root = matched
    value, a, b = (value_of_matches(side, names, root) for side in (weighed, diff.a, diff.b))
    a_share, b_share = share(a, int(diff.a.total[root])), share(b, int(diff.b.total[root]))
    of_view = share(value, int(weighed.total[root]))
    return {"text": text, "matched_total": value, "share": of_view, "a_share": a_share, "b_share": b_share, "change": b_share - a_share}


def _order(values: ChangedFunctions, sort: DiffSort) -> npt.NDArray[np.intp]:
    match sort:
        case DiffSort.A:
            return np.lexsort((values.name, -values.b_total, -values.a_total))
        case DiffSort.B:
            return np.lexsort((values.name, -values.a_total, -values.b_total))
        case DiffSort.CHANGE:
            rank = np.where(values.is_beyond, np.where(values.explained_by == NOTHING, 0, 1), 2)
            return np.lexsort((values.name, -np.abs(values.change), rank))


def _per(answer: DiffAnswer, values: ChangedFunctions, at: int) -> Json:
    """Totals per request or second, which tell whether a function costs more and not only a larger part; and the change in words."""
    a, b = (
        int(total[at]) / side.per[1] if side.per and side.per[1] else None
        for side, total in ((answer.a, values.a_total), (answer.b, values.b_total))
    )
    return {"a_per": a, "b_per": b, "direction": direction(values, at)}


def direction(values: ChangedFunctions, at: int) -> str:
    """Say in a word which way a function went: new, vanished, more, less, noise (it changed, but not beyond it) or same."""
    change = float(values.change[at])
    if not values.is_beyond[at]:
        return "noise" if change else "same"
    if not values.a_total[at] or not values.b_total[at]:
        return "new" if values.b_total[at] else "vanished"
    return "more" if change > 0 else "less"


def _row(diff: Diff, values: ChangedFunctions, at: int) -> Json:
    table, name, change, half = diff.tree.table, int(values.name[at]), float(values.change[at]), float(values.half[at])
    a_total, b_total, explained_by = int(values.a_total[at]), int(values.b_total[at]), int(values.explained_by[at])
    return {
        "name": table.names[name],
        "binary": table.binaries[name],
        "code": table.codes[name],
        "a_share": share(a_total, diff.a.sum),
        "b_share": share(b_total, diff.b.sum),
        "change": change,
        "low": max(change - half, -1.0),
        "high": min(change + half, 1.0),
        "is_noise": int(not values.is_beyond[at]),
        "a_total": a_total,
        "b_total": b_total,
        "a_self_share": share(int(values.a_own[at]), diff.a.sum),
        "b_self_share": share(int(values.b_own[at]), diff.b.sum),
        "state": "both" if a_total and b_total else "new" if b_total else "vanished",
        "explained_by": None if explained_by == NOTHING else table.names[explained_by],
    }
