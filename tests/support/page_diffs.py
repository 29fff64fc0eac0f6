# SPDX-License-Identifier: Apache-2.0
"""Answers of /api/v1/diff and /api/v1/deploys for the page's tests: one tree with two weights, and what changed between them."""

from __future__ import annotations

import hashlib
import math
import zlib
from dataclasses import dataclass, field
from functools import cache

from tests.support import page_reports as reports
from tests.support.page_profiles import CPP, MARK, ROOT, TICK_NS, Function, Json, Node, hostile_tree, service_tree

SLOWER = {"json::Value::find": 2.9, "encoding/json.(*decodeState).object": 0.2}
VANISHED = "cart::legacy_total"
NEW = "cart::quote"
Z_95 = 1.96
SPREAD = 1.5
"""How much wider than Poisson the hosts scatter."""


@dataclass(slots=True)
class Pair:
    """A frame with the samples of both sides; `width` is its share in the shape that is drawn."""

    function: Function
    a_self: int = 0
    b_self: int = 0
    children: list[Pair] = field(default_factory=list)
    a: int = 0
    b: int = 0
    width: float = 0.0
    own: float = 0.0
    node_id: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """A change of share with its interval."""

    a_share: float
    b_share: float
    low: float
    high: float
    is_noise: bool

    @property
    def change(self) -> float:
        return self.b_share - self.a_share

    def columns(self) -> dict[str, float]:
        numbers = {"a_share": self.a_share, "b_share": self.b_share, "change": self.change, "low": self.low, "high": self.high}
        return {**numbers, "is_noise": int(self.is_noise)}


@cache
def pair_tree(scenario: str, is_swapped: bool, shape: str) -> Pair:
    """The union of both sides; `half` has nothing on side A, `same` the same on both, `empty` nothing at all."""
    source = hostile_tree() if scenario == "hostile" else service_tree("checkout")
    root = _pair(source, scenario)
    order = _order(root)
    for pair, _ in order:
        if scenario in ("half", "empty"):
            pair.a_self = 0
        if scenario == "empty":
            pair.b_self = 0
        if is_swapped:
            pair.a_self, pair.b_self = pair.b_self, pair.a_self
    for pair, _ in reversed(order):
        pair.a = pair.a_self + sum(child.a for child in pair.children)
        pair.b = pair.b_self + sum(child.b for child in pair.children)
    _shape(root, shape)
    return root


@cache
def changed(scenario: str, is_swapped: bool) -> Json:
    """How many frames changed, and how many of those beyond noise."""
    root = pair_tree(scenario, is_swapped, "b")
    rows = [change_of(pair.a, pair.b, root) for pair, _ in _order(root)[1:]]
    changes = [row for row in rows if row.change]
    return {"beyond_noise": sum(not row.is_noise for row in changes), "frames": len(changes)}


def _pair(node: Node, scenario: str) -> Pair:
    made = Pair(node.function)
    is_same = scenario == "same"
    waiting = [(node, made)]
    while waiting:
        source, pair = waiting.pop()
        jitter = 1 + 0.01 * math.sin(source.id % 97)
        pair.a_self = source.self_samples
        pair.b_self = pair.a_self if is_same else round(pair.a_self * SLOWER.get(source.function.name, jitter))
        for child in source.children:
            below = Pair(child.function, node_id=child.id)
            pair.children.append(below)
            waiting.append((child, below))
    if not is_same and made.children:
        _add(made.children[-1], VANISHED, 1409, 0)
        _add(made.children[-1], NEW, 0, 907)
    return made


def _add(parent: Pair, name: str, a_self: int, b_self: int) -> None:
    """A frame of one side alone, and what it calls."""
    for text in (name, f"{name}::inner"):
        below = Pair(Function(text, "checkout", CPP, "src/cart.cc", 23), a_self // 2, b_self // 2, node_id=zlib.crc32(text.encode()))
        parent.children.append(below)
        parent = below


def _order(root: Pair) -> list[tuple[Pair, int]]:
    found: list[tuple[Pair, int]] = []
    waiting = [(root, 0)]
    while waiting:
        pair, depth = waiting.pop()
        found.append((pair, depth))
        waiting.extend((child, depth + 1) for child in reversed(pair.children))
    return found


def change_of(a: int, b: int, root: Pair) -> Change:
    """The change of a share and its interval, wide by SPREAD times Poisson."""
    a_share, b_share = a / max(1, root.a), b / max(1, root.b)
    half = SPREAD * Z_95 * math.sqrt(a_share / max(1, root.a) + b_share / max(1, root.b))
    change = b_share - a_share
    return Change(a_share, b_share, change - half, change + half, abs(change) <= half)


def _shape(root: Pair, shape: str) -> None:
    """Widths in shares; in the union a frame's own share is the larger of the two."""
    for pair, _ in reversed(_order(root)):
        own_a, own_b = pair.a_self / max(1, root.a), pair.b_self / max(1, root.b)
        pair.own = own_a if shape == "a" else own_b if shape == "b" else max(own_a, own_b)
        pair.width = pair.own + sum(child.width for child in pair.children)


def _find(root: Pair, node_id: int) -> tuple[Pair, list[Pair]]:
    path: list[Pair] = []
    for pair, depth in _order(root):
        del path[depth:]
        if pair.node_id == node_id:
            return pair, path
        path.append(pair)
    return root, []


def diff_answer(root: Pair, asked: dict[str, str]) -> Json:
    """The tree of a diff as the contract has it, without the heads of the sides."""
    shape = asked.get("shape", "b")
    view, above = _find(root, int(asked.get("at") or 0))
    search = asked.get("search", "").lower()
    unit = (root.a if shape == "a" else root.b or root.a) * TICK_NS
    least = view.width / (2 * float(asked.get("width_px", "1200")))
    names = ("function", "depth", "start", "total", "self", "id", "trimmed", "matched", "a_total", "b_total")
    nodes: dict[str, list[float]] = {name: [] for name in (*names, "a_share", "b_share", "change", "low", "high", "is_noise")}
    functions: dict[Function, int] = {}
    waiting: list[tuple[Pair, int, float]] = [(view, 0, 0.0)]
    matched = 0.0
    while waiting:
        pair, depth, start = waiting.pop()
        is_match = bool(search) and search in pair.function.name.lower() and pair.function is not ROOT
        matched += pair.own if is_match else 0
        index = -2 if pair.function is ROOT else functions.setdefault(pair.function, len(functions))
        row = (
            index,
            depth,
            start * unit,
            pair.width * unit,
            pair.own * unit,
            pair.node_id,
            0,
            int(is_match),
            pair.a * TICK_NS,
            pair.b * TICK_NS,
        )
        for name, value in zip(names, row, strict=True):
            nodes[name].append(value)
        for name, value in change_of(pair.a, pair.b, root).columns().items():
            nodes[name].append(value)
        at = start
        below = []
        for child in pair.children:
            if child.width >= least and child.width > 0:
                below.append((child, depth + 1, at))
                at += child.width
        waiting.extend(reversed(below))
    strings: dict[str, int] = {"": 0}
    columns: dict[str, list[int]] = {key: [] for key in ("name", "binary", "file", "line", "code")}
    for function in functions:
        for key in ("name", "binary", "file"):
            columns[key].append(strings.setdefault(getattr(function, key), len(strings)))
        columns["line"].append(function.line)
        columns["code"].append(function.code)
    ancestors = [
        {"name": p.function.name, "binary": p.function.binary, "id": p.node_id, "code": p.function.code, "total": p.width * unit}
        for p in above
    ]
    return {
        "kind": "cpu", "column": "ns", "unit": "ns", "shape": shape, "total": root.width * unit, "view_total": view.width * unit,
        "strings": list(strings), "functions": columns, "nodes": nodes, "ancestors": ancestors,
        "search": {"text": search, "matched_total": matched * unit, "share": matched / (view.width or 1)} if search else None,
        "trimmed": {"frames": 0, "share": 0.0},
    }  # fmt: skip


def diff_rows(root: Pair, search: str) -> list[Json]:
    """Functions by the sum of their frames, each counted once per stack."""
    weights: dict[Function, list[int]] = {}
    waiting: list[tuple[Pair, frozenset[Function]]] = [(root, frozenset())]
    while waiting:
        pair, above = waiting.pop()
        if pair.function is not ROOT:
            sums = weights.setdefault(pair.function, [0, 0, 0, 0])
            sums[2] += pair.a_self
            sums[3] += pair.b_self
            if pair.function not in above:
                sums[0] += pair.a
                sums[1] += pair.b
        below = above | {pair.function}
        waiting.extend((child, below) for child in pair.children)
    rows: list[Json] = []
    for function, (a, b, a_self, b_self) in weights.items():
        if not (a or b) or search not in function.name.lower():
            continue
        change = change_of(a, b, root)
        explained = function.name.removesuffix("::inner") if function.name.endswith("::inner") else None
        rows.append(
            {
                "name": function.name,
                "binary": function.binary,
                "code": function.code if function.code is not None else MARK,
                **change.columns(),
                "a_total": a * TICK_NS,
                "b_total": b * TICK_NS,
                "a_self_share": a_self / max(1, root.a),
                "b_self_share": b_self / max(1, root.b),
                "state": "new" if not a else "vanished" if not b else "both",
                "explained_by": explained,
            }
        )
    return rows


def per_of(rate: str, total_ns: int, seconds: float) -> Json:
    """What a side's values are said per: requests when a rate was given."""
    count = float(rate) * seconds if rate else seconds
    return {"unit": "request" if rate else "second", "count": count, "total": total_ns / count}


_NOTE = "HTTP/3 for everybody\nticket 4711"


def deploys_answer(now_s: float, service: str = "") -> Json:
    """A canary under way, a finished restart with a note, and one of another service."""
    found = [
        _deploy(now_s - 360, "checkout", ("2.4.0", "2.4.1"), (3, 44), None, reports.verdict(now_s)),
        _deploy(now_s - 7200, "gateway", ("v1.18.4", "v1.19.0"), (22, 22), _NOTE, reports.quiet_verdict(now_s)),
        _deploy(now_s - 90_000, "checkout", ("2.3.9", "2.4.0"), (44, 44), None, None),
    ]
    chosen = [deploy for deploy in found if service in ("", deploy["service"])]
    return {"deploys": chosen, "deploys_total": len(chosen)}


def _deploy(
    at_s: float, service: str, versions: tuple[str, str], hosts: tuple[int, int], annotation: str | None, verdict: Json | None
) -> Json:
    is_canary = hosts[0] < hosts[1]
    before = (at_s, at_s + 360) if is_canary else (at_s - 3600, at_s)
    after = (at_s, at_s + 360) if is_canary else (at_s, at_s + 3600)
    sides = [
        dict(zip(("version", "from_s", "until_s"), (v, *span), strict=True)) for v, span in zip(versions, (before, after), strict=True)
    ]
    return {
        "id": hashlib.blake2b(f"{service} {versions[1]}".encode(), digest_size=8).hexdigest(),
        "service": service,
        "version": versions[1],
        "replaced": versions[0],
        "first_seen_s": at_s,
        "hosts_done": hosts[0],
        "hosts_total": hosts[1],
        "annotation": annotation,
        "is_return": False,
        "requests_per_s": None,
        "verdict": verdict,
        "compare": {"is_canary": is_canary, "a": sides[0], "b": sides[1]},
    }
