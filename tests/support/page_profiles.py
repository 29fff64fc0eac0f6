# SPDX-License-Identifier: Apache-2.0
"""Answers of the API for the page's tests, made from a seed: the same trees every time, and exact sums in every one.

A profile is a tree of names with self values; totals, starts, depths and the tables of strings follow from it.
"""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, field

NATIVE, CPP, RUST, GO, JAVA, JAVASCRIPT, PYTHON, KERNEL, MARK, UNKNOWN = range(10)
TICK_NS = 10_101_010

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class Function:
    """What a frame stands for: `code` is the API's kind of code."""

    name: str
    binary: str = ""
    code: int = NATIVE
    file: str = ""
    line: int = 0


BUILD = "bd65d0de8a3c4f0a92f13a5cc0a4a1d7be90cbd5"
"""Build id of all binaries."""


@dataclass(slots=True)
class Node:
    """A frame in the tree; `self_samples` are those that end in it."""

    function: Function
    self_samples: int = 0
    children: list[Node] = field(default_factory=list)
    total_samples: int = 0
    trimmed: int = 0
    id: int = 0

    def child(self, function: Function) -> Node:
        """The child of that function, made when it is not there."""
        for each in self.children:
            if each.function == function:
                return each
        made = Node(function)
        self.children.append(made)
        return made


ROOT = Function("all", code=UNKNOWN)
TRIMMED = Function("(trimmed)", code=UNKNOWN)

HOSTILE_NAMES = (
    "</script><img src=x onerror=alert(1)>",
    '"><img src=x onerror=alert(2)>',
    "'-alert(3)-'",
    "{{7*7}}",
    "javascript:alert(4)",
    "class@anonymous\x00/srv/x.php:3",
    "\x1b[31mred",
    "line\u2028separator",
    "right\u202eto left",
    "<lambda>",
    "<module>",
    "A<B>&C",
    "net/http.(*liveSwitchReader).Read",
    "(anonymous namespace)::foo(int, int)",
    "<[u64; 3] as arr::T>::go",
    "9c51fd34 java.lang.String.hashCode ([JIT app cache])",
)

_LIBRARIES: tuple[tuple[str, int, tuple[str, ...]], ...] = (
    (
        "checkout",
        CPP,
        (
            "json::parse(std::string_view)",
            "json::Value::find",
            "http::Server::serve",
            "render::Template::fill",
            "cart::total_of",
            "tax::rate_for(cart::Item const&)",
            "cache::Lru::get",
        ),
    ),
    (
        "checkout",
        RUST,
        ("pricing::engine::evaluate", "pricing::rules::apply", "<[u64; 3] as pricing::Sum>::add", "serde_json::de::from_str"),
    ),
    ("gateway", GO, ("net/http.(*conn).serve", "runtime.mallocgc", "encoding/json.(*decodeState).object", "main.route")),
    ("libpython3.11.so.1.0", PYTHON, ("app.views.cart_detail", "django.core.handlers.base.get_response", "json.loads", "<module>")),
    ("libjvm.so", JAVA, ("java.util.HashMap.get", "com.acme.search.Index.query", "org.apache.lucene.search.TermScorer.score")),
    ("node", JAVASCRIPT, ("renderToString", "processTicksAndRejections node:internal/process/task_queues")),
    ("libc.so.6", NATIVE, ("__memcpy_avx_unaligned_erms", "malloc", "_int_free", "__libc_start_main")),
    ("libssl.so.3", NATIVE, ("SSL_read", "ossl_record_layer_read")),
)
_KERNEL_CHAIN = ("entry_SYSCALL_64_after_hwframe", "do_syscall_64", "ksys_read", "vfs_read", "tcp_recvmsg", "skb_copy_datagram_iter")


def _kernel(name: str) -> Function:
    return Function(name, "[kernel]", KERNEL)


def service_tree(seed: str, samples: int = 30_937) -> Node:
    """A tree as a service's profile looks: threads, a heavy path, libraries, kernel below, a little that has no name."""
    chance = random.Random(seed)
    root = Node(ROOT)
    functions = [
        Function(name, binary, code, f"src/{binary.split('.', maxsplit=1)[0]}/{at}.cc", 20 + 7 * at)
        for binary, code, names in _LIBRARIES
        for at, name in enumerate(names)
    ]
    threads = [Function("worker-N"), Function("main"), Function("grpc-poll-N"), Function("G1 Conc#N")]
    habits = [chance.sample(functions, 4) for _ in functions]
    for _ in range(2500):
        node = root.child(chance.choices(threads, (64, 21, 11, 4))[0]).child(functions[2])
        at = 2
        for _ in range(int(chance.triangular(2, 16, 5))):
            # Each function calls a few others, the first of them most often: stacks then share their upper part.
            called = chance.choices(habits[at], (9, 5, 3, 2))[0]
            at = functions.index(called)
            node = node.child(called)
        if chance.random() < 0.3:
            for name in _KERNEL_CHAIN[: chance.randrange(3, 7)]:
                node = node.child(_kernel(name))
        elif chance.random() < 0.05:
            node = node.child(Function("[unknown] libfoo.so.2+0x1f3a0", "libfoo.so.2", UNKNOWN))
        elif chance.random() < 0.02:
            node = node.child(Function("[exited]", code=MARK))
        node.self_samples += 1 + min(400, int(chance.paretovariate(0.9)))
    return _finish(root, samples)


def hostile_tree() -> Node:
    """Every hostile name as a frame of 7 samples under its own thread, side by side."""
    root = Node(ROOT)
    for at, name in enumerate(HOSTILE_NAMES):
        thread = root.child(Function(name if at % 2 else f"comm {name}"))
        thread.child(Function(name, f"/opt/{name}", at % 8, f"src/{name}.c", 3)).self_samples = 7
    return _finish(root, 7 * len(HOSTILE_NAMES))


def deep_tree(depth: int = 30_000) -> Node:
    """One stack of so many frames."""
    root = Node(ROOT)
    node = root
    for at in range(depth):
        node = node.child(Function(f"recurse_{at % 7}", "deep"))
    node.self_samples = 23
    return _finish(root, 23)


def huge_tree(nodes: int = 100_000, rows: int = 50) -> Node:
    """`nodes` frames in `rows` rows, each of them drawn in a window some 2,000 px wide."""
    root = Node(ROOT)
    per_row = nodes // rows
    for column in range(per_row):
        node = root
        for row in range(rows):
            made = Node(
                Function(f"pkg{(column * 7 + row) % 211}::function_{(column + row * 13) % 997}", f"lib{column % 17}.so", (column + row) % 8)
            )
            node.children.append(made)
            node = made
        node.self_samples = 1
    return _finish(root, per_row)


def empty_tree() -> Node:
    """No samples at all."""
    return _finish(Node(ROOT), 0)


def _preorder(root: Node) -> list[tuple[Node, int]]:
    found: list[tuple[Node, int]] = []
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        found.append((node, depth))
        waiting.extend((child, depth + 1) for child in reversed(node.children))
    return found


def _finish(root: Node, samples: int) -> Node:
    """Totals from the leaves up, ids from the path of names, children by name; `samples` is made exact at the first leaf."""
    missing = samples - sum(node.self_samples for node, _ in _preorder(root))
    order = _preorder(root)
    leaves = [node for node, _ in order if node.self_samples > 0]
    for node in leaves:
        node.self_samples += missing // len(leaves)
    if leaves:
        leaves[0].self_samples += missing - missing // len(leaves) * len(leaves)
    for node, _ in order:
        for at, child in enumerate(node.children):
            seed = f"{node.id}/{child.function.name}\0{child.function.binary}\0{at}"
            child.id = int.from_bytes(hashlib.blake2b(seed.encode("utf-8", "surrogatepass"), digest_size=6).digest(), "big") + 1
    for node, _ in reversed(order):
        node.total_samples = node.self_samples + sum(child.total_samples for child in node.children)
        node.children.sort(key=lambda each: (each.function.name, each.function.binary))
    return root


def find(root: Node, node_id: int) -> tuple[Node, list[Node]]:
    """The node with an id and the nodes above it, root first; the root itself when there is none."""
    path: list[Node] = []
    for node, depth in _preorder(root):
        del path[depth:]
        if node.id == node_id:
            return node, path
        path.append(node)
    return root, []


def flamegraph_nodes(view: Node, total: int, width_px: float, search: str) -> tuple[Json, Json, int, int]:
    """Columns of a view, with what is under half a pixel gathered as trimmed; functions; matched samples; trimmed frames."""
    least = view.total_samples / (2 * width_px) if width_px else 0
    strings: dict[str, int] = {"": 0}
    functions: dict[Function, int] = {}
    nodes: dict[str, list[float]] = {key: [] for key in ("function", "depth", "start", "total", "self", "id", "trimmed", "matched")}
    matched_total = trimmed_frames = 0
    waiting: list[tuple[Node, int, int, bool]] = [(view, 0, 0, False)]
    while waiting:
        node, depth, start, is_under = waiting.pop()
        is_match = bool(search) and search.lower() in node.function.name.lower() and node.function not in (ROOT, TRIMMED)
        if is_match and not is_under:
            matched_total += node.total_samples
        index = -2 if node.function is ROOT else -1 if node.trimmed else functions.setdefault(node.function, len(functions))
        row = (
            index,
            depth,
            start * TICK_NS,
            node.total_samples * TICK_NS,
            node.self_samples * TICK_NS,
            node.id,
            node.trimmed,
            int(is_match),
        )
        for key, value in zip(nodes, row, strict=True):
            nodes[key].append(value)
        shown = [child for child in node.children if child.total_samples >= least]
        hidden = [child for child in node.children if child.total_samples < least]
        if hidden:
            count = sum(len(_preorder(child)) for child in hidden)
            trimmed_frames += count
            shown.append(Node(TRIMMED, 0, [], sum(child.total_samples for child in hidden), count, -node.id))
        at = start
        ordered: list[tuple[Node, int, int, bool]] = []
        for child in shown:
            ordered.append((child, depth + 1, at, is_under or is_match))
            at += child.total_samples
        waiting.extend(reversed(ordered))
    columns: Json = {key: [] for key in ("name", "binary", "file", "line", "code")}
    for function in functions:
        for key in ("name", "binary", "file"):
            text = getattr(function, key)
            columns[key].append(strings.setdefault(text, len(strings)))  # type: ignore[attr-defined]
        columns["line"].append(function.line)  # type: ignore[attr-defined]
        columns["code"].append(function.code)  # type: ignore[attr-defined]
    columns["builds"] = [[strings.setdefault(BUILD, len(strings))] if binary else [] for binary in columns["binary"]]
    return {"strings": list(strings), "functions": columns, "nodes": nodes}, {}, matched_total, trimmed_frames


def top_rows(root: Node) -> list[Json]:
    """Functions with self and total; total counts a function once per stack."""
    own: dict[Function, int] = {}
    whole: dict[Function, int] = {}
    waiting: list[tuple[Node, frozenset[Function]]] = [(root, frozenset())]
    while waiting:
        node, above = waiting.pop()
        function = node.function
        if function is not ROOT:
            own[function] = own.get(function, 0) + node.self_samples
            if function not in above:
                whole[function] = whole.get(function, 0) + node.total_samples
        below = above | {function} if len(above) < 200 else above
        waiting.extend((child, below) for child in node.children)
    total = max(1, root.total_samples)
    return [
        {
            "name": each.name,
            "binary": each.binary,
            "file": each.file,
            "line": each.line,
            "code": each.code,
            "builds": [BUILD] if each.binary else [],
            "self": own[each] * TICK_NS,
            "total": whole[each] * TICK_NS,
            "self_share": own[each] / total,
            "total_share": whole[each] / total,
        }
        for each in own
    ]
