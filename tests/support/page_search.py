# SPDX-License-Identifier: Apache-2.0
"""Answers of the fleet search and of odd hosts for tests of the page."""

from collections.abc import Callable
from typing import Any

Json = dict[str, Any]
Route = Callable[[str, dict[str, str]], Json]
FUNCTIONS = ("json::parse", "json::parse_number")


def routes(now_s: float) -> dict[str, Route]:
    """By name below /api/v1."""
    return {"search": lambda _, asked: search_answer(now_s, asked), "odd_hosts": lambda *_: odd_hosts_answer(now_s)}


def search_answer(now_s: float, asked: dict[str, str]) -> Json:
    """Two services for whatever is a part of json::parse, none for anything else."""
    text = asked.get("search", "")
    names = [name for name in FUNCTIONS if text.lstrip("=") in name]
    rows = [_service("checkout", 61, 0.25, names), _service("search", 7, 0.05, names[:1])] if names else []
    return {
        "search": text, "kind": "cpu", "column": "ns", "unit": "ns", "from_s": now_s - 900, "until_s": now_s, "step_s": 60,
        "times_s": [now_s - 900 + 60 * at for at in range(15)], "fleet_total": 680 * 10**9, "total": sum(row["total"] for row in rows),
        "share": 0.1, "services": rows, "services_total": len(rows), "functions": [], "functions_total": len(names),
    }  # fmt: skip


def _service(name: str, seconds: int, share: float, functions: list[str]) -> Json:
    found = [{"name": one, "binary": "app", "code": 1, "self": 10**9, "total": seconds * 10**9, "services": 2} for one in functions]
    return {
        "service": name, "self": 2 * 10**9, "total": seconds * 10**9, "service_total": 0, "share": share, "fleet_share": share / 3,
        "hosts": 23, "trend": [0.1, None, 0.2, 0.4], "functions": found, "functions_total": len(found),
    }  # fmt: skip


def odd_hosts_answer(now_s: float) -> Json:
    """One odd host and two that are as the median."""
    odd = [{"name": "json::parse", "binary": "app", "code": 1, "share": 0.31, "median": 0.11}]
    hosts = [
        {"host": host, "total": 10**11, "distance": distance, "expected": 0.01, "is_odd": int(distance > 0.1), "functions": odd}
        for host, distance in (("web-17", 0.23), ("web-2", 0.02), ("web-3", 0.01))
    ]
    return {
        "service": "checkout", "column": "ns", "unit": "ns", "from_s": now_s - 900, "until_s": now_s, "is_comparable": True,
        "hosts": hosts, "hosts_total": 3, "odd_total": 1,
    }  # fmt: skip
