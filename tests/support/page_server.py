# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the server: the page's files, and answers of the API made by tests.support.page_profiles.

A scenario chooses what the API says: normal, empty, error, slow, partial, hostile, huge, deep. Run it to work on the page:
`python -m tests.support.page_server --port 8090 --scenario normal`.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support import page_diffs as diffs
from tests.support import page_profiles as profiles
from tests.support import page_reports as reports
from tests.support import page_search as searches
from tests.support import page_symbols as symbols
from tests.support.page_events import event_client
from tests.support.page_profiles import TICK_NS, Json

WEB = Path(__file__).resolve().parents[2] / "web"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}
CSP = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
NOW_S = int(time.time()) // 10 * 10
"""Times of the stand-in: ages on the page must make sense beside the reader's clock."""
SERVICES = ("checkout", "gateway", "search-api", "recommender", "postgres", "emberwatch-agent", "kubelet", "[kernel]")
UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Problem(Exception):
    """An error of the API: status, message, hint."""


@cache
def _tree(scenario: str, service: str) -> profiles.Node:
    special: dict[str, Callable[[], profiles.Node]] = {
        "hostile": profiles.hostile_tree,
        "deep": profiles.deep_tree,
        "huge": profiles.huge_tree,
        "empty": profiles.empty_tree,
    }
    if scenario in special:
        return special[scenario]()
    return profiles.service_tree(service)


def _time_s(text: str) -> float:
    if text == "now":
        return NOW_S
    if text.startswith("-"):
        return NOW_S - int(text[1:-1]) * UNITS_S[text[-1]]
    try:
        return float(text)
    except ValueError as error:
        raise Problem(400, f"{text!r} is not a time", "write a time as -15m, now or unix seconds") from error


class PageServer:
    """The stand-in, on a port of its own. `scenario` may be changed while it runs; `requests` lists the paths asked for."""

    def __init__(self, scenario: str = "normal", port: int = 0) -> None:
        self.scenario, self.delay_s = scenario, 0.0
        self.requests: list[str] = []
        self._events = Lock()
        self.files = symbols.FakeFiles()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.answer(self)

            def do_POST(self) -> None:
                outer.requests.append(self.path)
                _send(self, *outer.files.take(self), "application/json")

            do_PUT = do_POST  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                """Quiet."""

        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._http.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._http.server_address[1]}"
        self._thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> PageServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        """Serve one request; a client that has gone away is none of our business."""
        url = urlsplit(handler.path)
        self.requests.append(handler.path)
        try:
            if url.path.startswith("/api/"):
                self._answer_api(handler, url.path, {key: values[-1] for key, values in parse_qs(url.query).items()})
            else:
                self._answer_file(handler, unquote(url.path))
        except (BrokenPipeError, ConnectionResetError):
            return

    def _answer_file(self, handler: BaseHTTPRequestHandler, path: str) -> None:
        name = path.removeprefix("/assets/") if path.startswith("/assets/") else "index.html"
        file = (WEB / name).resolve()
        if not file.is_relative_to(WEB) or not file.is_file():
            return _send(handler, 404, b"not found", "text/plain")
        return _send(handler, 200, file.read_bytes(), TYPES[file.suffix])

    def _answer_api(self, handler: BaseHTTPRequestHandler, path: str, asked: dict[str, str]) -> None:
        if self.scenario == "slow" or self.delay_s:
            time.sleep(self.delay_s or 3)
        try:
            if self.scenario == "error":
                raise Problem(503, "The store is being read by a backup.", "Try again in a minute, or look at /healthz.")
            name = path.removeprefix("/api/v1/")
            if name.startswith("symbols/files/"):
                return _send(handler, 200, self.files.received(path), "application/json")
            if _is_of_events(name, asked):
                return self._answer_from_server(handler, path, asked)
            answer = _route(self.scenario, name, asked)
        except Problem as problem:
            status, message, hint = problem.args
            body = json.dumps({"error": {"message": message, "hint": hint, "position": None}}).encode()
            return _send(handler, status, body, "application/json")
        if isinstance(answer, str):
            return _send(handler, 200, answer.encode(), "text/plain; charset=utf-8")
        return _send(handler, 200, json.dumps(answer).encode(), "application/json")

    def _answer_from_server(self, handler: BaseHTTPRequestHandler, path: str, asked: dict[str, str]) -> None:
        """Kinds beside cpu are answered by the real server."""
        if self.scenario == "empty":
            asked = {**asked, "from": "-2d", "until": "-1d"}
        with self._events:
            answer = event_client(NOW_S).get(path, query_string=asked)
        return _send(handler, answer.status_code, answer.data, answer.mimetype)


def _is_of_events(name: str, asked: dict[str, str]) -> bool:
    query = asked.get("query", "")
    return name in ("table", "heatmap", "columns", "kinds", "peers") or (bool(query) and not query.startswith("cpu"))


def _send(handler: BaseHTTPRequestHandler, status: int, body: bytes, kind: str) -> None:
    handler.send_response(status)
    handler.send_header("Content-Type", kind)
    handler.send_header("Content-Length", str(len(body)))
    handler.send_header("Content-Security-Policy", CSP)
    handler.send_header("X-Content-Type-Options", "nosniff")
    handler.send_header("Cache-Control", "no-store")
    handler.end_headers()
    handler.wfile.write(body)


def _route(scenario: str, name: str, asked: dict[str, str]) -> Json | str:
    routes: dict[str, Callable[[str, dict[str, str]], Json | str]] = {
        "services": _services,
        "labels": lambda *_: {"labels": ["host", "service", "version"]},
        "labels/host/values": lambda *_: {"values": [{"value": f"web-{at}", "cpu_ns": 10**11 // at} for at in range(1, 45)]},
        "labels/version/values": lambda *_: {"values": [{"value": v, "cpu_ns": 10**10} for v in ("2.4.1", "2.4.0", "2.3.9")]},
        "series": _series,
        "flamegraph": _flamegraph,
        "top": _top,
        "agents": _agents,
        "now": lambda *_: {"now_s": NOW_S},
        "symbols": lambda scenario, _: symbols.symbols_answer(scenario, NOW_S),
        "deploys": lambda scenario, asked: (
            {"deploys": [], "deploys_total": 0} if scenario == "empty" else diffs.deploys_answer(NOW_S, asked.get("service", ""))
        ),
        "events": _events,
        **searches.routes(NOW_S),
        "hostmap": lambda scenario, asked: reports.hostmap_answer(_range(asked), 0 if scenario == "empty" else 14),
        "diff": _diff,
        "diff/top": _diff_top,
    }
    if name.startswith("deploys/"):
        return reports.deploy_answer(diffs.deploys_answer(NOW_S)["deploys"], name.removeprefix("deploys/"))
    if name not in routes:
        raise Problem(404, f"There is no {name}.", "See /api/v1/labels.")
    return routes[name](scenario, asked)


def _events(scenario: str, _: dict[str, str]) -> Json:
    return (
        {"events": [], "events_total": 0} if scenario == "empty" else reports.events_answer(NOW_S, diffs.deploys_answer(NOW_S)["deploys"])
    )


def _range(asked: dict[str, str]) -> tuple[float, float]:
    return _time_s(asked.get("from", "-15m")), _time_s(asked.get("until", "now"))


def _service_of(asked: dict[str, str]) -> str:
    query = asked.get("query", "")
    return query.split('service="')[1].split('"')[0] if 'service="' in query else "checkout"


def _load(at_s: float, seed: int) -> float:
    wave = 1 + 0.45 * math.sin(at_s / 700 + seed) + 0.2 * math.sin(at_s / 97 + seed * 3) + 0.06 * math.sin(at_s / 11)
    return max(0.02, wave * 8.0 / math.pow(1 + seed, 1.3))


def _services(scenario: str, asked: dict[str, str]) -> Json:
    start_s, end_s = _range(asked)
    step_s = max(10.0, (end_s - start_s) / 60)
    agents = {"total": 0 if scenario == "empty" else 44, "silent": 3 if scenario == "partial" else 0}
    names = profiles.HOSTILE_NAMES if scenario == "hostile" else () if scenario == "empty" else SERVICES
    sums = [sum(_load(start_s + at * step_s, seed) for at in range(60)) / 60 for seed in range(len(names))]
    rows: list[Json] = []
    for seed, name in enumerate(names):
        spark = [_load(start_s + at * step_s, seed) for at in range(60)]
        cpu_s = sums[seed] * (end_s - start_s)
        row: Json = {
            "service": name,
            "cpu_ns": cpu_s * 1e9,
            "cores": sums[seed],
            "cores_now": spark[-1],
            "share": sums[seed] / sum(sums),
            "spark": spark,
            "version": ("2.4.1", "v1.19.0", "sha-9f3c2e1", "", "15.7")[seed % 5],
            "version_since_s": NOW_S - 4000 * (seed + 1) ** 2,
            "versions": 1 + (seed == 0),
            "hosts": max(1, 44 // (seed + 1)),
            "samples": int(cpu_s * 99),
            "lost_share": (0.0, 0.0, 0.031)[seed % 3] if scenario == "partial" else 0.0,
            "whole_share": (0.999, 1.0, 0.62, None)[seed % 4],
            "unnamed_share": (0.004, 0.0, 0.12, None)[seed % 4],
            "deploy": reports.change_of(seed),
        }
        rows.append(row)
    now, cpu_ns = sum(_load(NOW_S, seed) for seed in range(len(names))), sum(sums) * (end_s - start_s) * 1e9
    totals = {"cores": sum(sums), "cores_now": now, "hosts": agents["total"], "samples": 1_234_567, "cpu_ns": cpu_ns}
    return {"from_s": start_s, "until_s": end_s, "step_s": step_s, "services": rows, "totals": totals, "agents": agents}


def _series(scenario: str, asked: dict[str, str]) -> Json:
    start_s, end_s = _range(asked)
    step_s = next(step for step in (10, 30, 60, 300, 1800, 21_600) if (end_s - start_s) / step <= 240)
    times = [start_s + at * step_s for at in range(math.ceil((end_s - start_s) / step_s))]
    values: list[float | None] = [None if scenario == "empty" else _load(at, 0) * min(step_s, end_s - at) * 1e9 for at in times]
    loss = [0.0] * len(times)
    if scenario == "partial":
        gap = len(times) // 3
        values[gap : gap + 4] = [None] * 4
        loss[gap + 4 : gap + 8] = [0.09] * 4
    return {
        "kind": "cpu",
        "unit": "ns",
        "from_s": start_s,
        "until_s": end_s,
        "step_s": step_s,
        "times_s": times,
        "values": values,
        "by": None,
        "loss": loss,
    }


def _quality(scenario: str, total: int) -> Json:
    lost = {"MAP_FULL": 1409, "TIMER_MISSED": 23} if scenario == "partial" else {}
    gone = sum(lost.values())
    idle = total * 3
    return {
        "is_of_hosts": True, "expected": total + idle + gone, "stored": total, "idle": idle, "filtered": 0, "lost": lost,
        "lost_share": gone / max(1, total + gone), "stack_lost": {"STACK_EFAULT_USER": 67} if total else {},
        "stack_lost_share": 0.002, "truncated_share": 0.014 if scenario == "partial" else 0.0, "unnamed_share": 0.004,
        "unwind_stopped_share": 0.003, "kernel_hidden_share": 0.031 if scenario == "partial" else 0.0,
        "unknown_share": 0.0, "whole_share": 0.998, "hosts": 0 if scenario == "empty" else 41 if scenario == "partial" else 44,
        "hosts_silent": ["web-3", "web-9", "web-12"] if scenario == "partial" else [],
        "naming": 3 if scenario == "naming" else 0,
    }  # fmt: skip


def _flamegraph(scenario: str, asked: dict[str, str]) -> Json | str:
    root = _tree(scenario, _service_of(asked))
    if asked.get("format") == "folded":
        return "worker-N;http::Server::serve;json::parse 23\n"
    if asked.get("search") == "(" and asked.get("mode") == "regex":
        raise Problem(400, "The search is no regular expression: missing closing ).", "Escape the bracket, or search for text.")
    start_s, end_s = _range(asked)
    view, above = profiles.find(root, int(asked.get("at") or 0))
    search = asked.get("search", "")
    width_px = 0 if scenario == "huge" else float(asked.get("width_px", "1200"))
    columns, _, matched, trimmed = profiles.flamegraph_nodes(view, root.total_samples, width_px, search)
    total = root.total_samples * TICK_NS
    whole = max(1, view.total_samples)
    return {
        "kind": "cpu", "column": "ns", "unit": "ns", "from_s": start_s, "until_s": end_s, "seconds": end_s - start_s,
        "total": total, "view_total": view.total_samples * TICK_NS, "samples": root.total_samples, **columns,
        "ancestors": [{"name": each.function.name, "binary": each.function.binary, "id": each.id, "code": each.function.code,
                       "total": each.total_samples * TICK_NS} for each in above],
        "search": {"text": search, "matched_total": matched * TICK_NS, "share": matched / whole} if search else None,
        "quality": _quality(scenario, root.total_samples), "trimmed": {"frames": trimmed, "share": 0.01},
        "nearest_data_s": NOW_S - 90_000 if scenario == "empty" else None,
    }  # fmt: skip


def _top(scenario: str, asked: dict[str, str]) -> Json:
    root = _tree(scenario, _service_of(asked))
    rows = [] if scenario in ("deep", "huge") else profiles.top_rows(root)
    search = asked.get("search", "").lower()
    rows = [row for row in rows if search in str(row["name"]).lower()]
    rows.sort(key=lambda row: -float(str(row[asked.get("sort", "self")])))
    return {"total": root.total_samples * TICK_NS, "rows": rows[: int(asked.get("limit", "200"))], "rows_total": len(rows)}


def _diff_head(root: diffs.Pair, asked: dict[str, str], is_first: bool) -> Json:
    total = root.a if is_first else root.b
    side = "a" if is_first else "b"
    start_s, end_s = _time_s(asked[f"{side}_from"]), _time_s(asked[f"{side}_until"])
    return {
        "query": asked[side], "from_s": start_s, "until_s": end_s, "seconds": end_s - start_s, "total": total * TICK_NS,
        "samples": total, "hosts": 44 if total else 0, "replicates": 32 if total else 0, "is_empty": not total,
        "quality": _quality("normal", total), "per": diffs.per_of(asked.get(f"{side}_rate", ""), total * TICK_NS, end_s - start_s),
    }  # fmt: skip


def _diff_heads(scenario: str, asked: dict[str, str]) -> tuple[diffs.Pair, Json]:
    missing = {"a", "a_from", "a_until", "b", "b_from", "b_until"} - asked.keys()
    if missing:
        raise Problem(400, f"a diff needs {', '.join(sorted(missing))}", "Give both sides.")
    if "{" not in asked["a"]:
        raise Problem(400, "expected { after the kind of side A", 'Write cpu{service="checkout"}.')
    # The side that begins earlier is the older code, whichever letter it has.
    is_swapped = _time_s(asked["a_from"]) > _time_s(asked["b_from"])
    root = diffs.pair_tree(scenario, is_swapped, asked.get("shape", "b"))
    heads = {"a": _diff_head(root, asked, True), "b": _diff_head(root, asked, False)}
    empty = [f"side {side.upper()} has no samples in its range" for side, head in heads.items() if head["is_empty"]]
    return root, {**heads, "notes": empty, "changed": diffs.changed(scenario, is_swapped)}


def _diff(scenario: str, asked: dict[str, str]) -> Json:
    root, heads = _diff_heads(scenario, asked)
    return {**diffs.diff_answer(root, asked), **heads}


def _diff_top(scenario: str, asked: dict[str, str]) -> Json:
    root, heads = _diff_heads(scenario, asked)
    rows = diffs.diff_rows(root, asked.get("search", "").lower())
    order = {"a": "a_share", "b": "b_share"}.get(asked.get("sort", "change"), "change")
    rows.sort(key=lambda row: -abs(float(str(row[order]))))
    return {**heads, "rows": rows[: int(asked.get("limit", "200"))], "rows_total": len(rows)}


def _agents(scenario: str, asked: dict[str, str]) -> Json:
    return {"agents": [_agent(scenario, at) for at in range(1, 1 if scenario == "empty" else 45)]}


def _agent(scenario: str, at: int) -> Json:
    is_silent = scenario == "partial" and at in (3, 9, 12)
    is_losing = scenario == "partial" and at == 5
    return {
        "host": profiles.HOSTILE_NAMES[0] if scenario == "hostile" and at == 1 else f"web-{at}",
        "agent_id": f"{at:032x}",
        "version": "0.1.0",
        "kernel": "6.1.0-28-amd64" if at % 5 else "6.12.9-cloud",
        "cpus": 8,
        "rate_hz": 49 if at == 7 else 99,
        "first_seen_s": NOW_S - 86_400,
        "last_seen_s": NOW_S - (740 if is_silent else 4),
        "is_silent": is_silent,
        "lost": {"MAP_FULL": 1409} if is_losing else {},
        "lost_share": 0.031 if is_losing else 0.0,
        "cpu_share": 0.0008 + at * 1e-5,
        "bpf_share": 0.0021,
        "rss_bytes": 41 << 20,
        "map_bytes": 12 << 20,
        "flags": ["stepped down to 49 Hz"] if at == 7 else ["kind_limited:syscall:52"] * (at == 8 and scenario == "normal"),
    }


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--scenario", default="normal")
    asked = parser.parse_args()
    with PageServer(asked.scenario, asked.port) as server:
        print(server.address)
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    main()
