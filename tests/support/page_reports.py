# SPDX-License-Identifier: Apache-2.0
"""Answers of the stand-in server for reports of deploys: a canary that changed two functions, a quiet one, one that waits."""

from __future__ import annotations

import math
from typing import Any

from tests.support.page_profiles import Json

CHANGES = (
    ("json::parse(std::string_view, json::Options const&)", "checkout", 3, 0.121, 0.176, 0.006, "both", ["serve_request", "run"]),
    ("legacy_escape", "checkout", 2, 0.048, 0.0, 0.004, "vanished", []),
    ("zstd::compress_block", "libzstd.so.1", 2, 0.090, 0.107, 0.005, "both", []),
)  # fmt: skip
"""Name, binary, code, shares, half the interval, state, what it explains."""


def verdict(now_s: float) -> Json:
    """Of a canary under way."""
    return {
        "words": "CPU per host +6 %: 3 functions",
        "change": 0.061,
        "is_noise": False,
        "functions": 3,
        "is_final": False,
        "made_s": now_s - 20,
    }


def quiet_verdict(now_s: float) -> Json:
    """Of one that changed nothing."""
    return {"words": "no change beyond noise", "change": 0.004, "is_noise": True, "functions": 0, "is_final": True, "made_s": now_s - 3000}


def change_of(seed: int) -> Json | None:
    """What the last deploy of a service of the fleet has changed."""
    one = (verdict(0), None, quiet_verdict(0), {**verdict(0), "words": "CPU per host −3 %: 1 function", "change": -0.031})[seed % 4]
    return one and {"id": f"d{seed}", "words": one["words"], "change": one["change"], "is_noise": one["is_noise"]}


def deploy_answer(deploys: list[Json], identity: str) -> Json:
    """The report of one of the deploys in the list."""
    deploy = next((one for one in deploys if one["id"] == identity), deploys[0])
    hosts = [{"host": f"web-{at + 1}", "first_seen_s": deploy["first_seen_s"] + (at * at * 7) % 300} for at in range(deploy["hosts_done"])]
    hosts.sort(key=lambda host: float(host["first_seen_s"]))
    has_report = deploy["verdict"] is not None
    missing = "" if has_report else "waiting for 120 s of the new version; there are 40 s"
    return {"deploy": deploy, "hosts": hosts, "report": _report(deploy) if has_report else None, "missing": missing}


def _report(deploy: Json) -> Json:
    is_quiet = deploy["verdict"]["is_noise"]
    before = [1.0 + 0.03 * math.sin(at * 1.7) for at in range(32)]
    after = [(1.004 if is_quiet else 1.061) + 0.03 * math.sin(at * 2.3) for at in range(12)]
    sides = deploy["compare"]
    return {
        "sides": [
            {**sides[side], "hosts": hosts, "samples": 41_234, "replicates": parts} for side, hosts, parts in (("a", 41, 32), ("b", 3, 12))
        ],
        "cpu": {
            "measure": "CPU per host",
            "unit": "cores",
            "a": 1.0,
            "b": 1.004 if is_quiet else 1.061,
            "a_replicates": before,
            "b_replicates": after,
            "change": deploy["verdict"]["change"],
            "low": deploy["verdict"]["change"] - 0.02,
            "high": deploy["verdict"]["change"] + 0.02,
            "is_noise": is_quiet,
        },
        "series": _series(deploy),
        "rows": [] if is_quiet else [_row(*change) for change in CHANGES],
        "functions": {"beyond_noise": 0, "explained": 0, "reported": 0, "compared": 412}
        if is_quiet
        else {"beyond_noise": 11, "explained": 8, "reported": 3, "compared": 412},
        "notes": [] if is_quiet else ["the sides have different hosts, and one fewer than 6"],
    }


def _series(deploy: Json) -> Json:
    start_s, until_s, step_s = deploy["first_seen_s"] - 1800, deploy["compare"]["b"]["until_s"], 30
    count = int((until_s - start_s) / step_s)
    came, wave = 1800 // step_s, [1 + 0.05 * math.sin(at / 6) + 0.02 * math.sin(at * 1.9) for at in range(count)]
    stays = deploy["compare"]["is_canary"]
    after: list[Any] = [None if at < came else value * 1.061 for at, value in enumerate(wave)]
    return {
        "from_s": start_s,
        "until_s": until_s,
        "step_s": step_s,
        "before": [v if at < came or stays else None for at, v in enumerate(wave)],
        "after": after,
    }


def _row(name: str, binary: str, code: int, a: float, b: float, half: float, state: str, explains: list[str]) -> Json:
    return {
        "name": name,
        "binary": binary,
        "code": code,
        "a_share": a,
        "b_share": b,
        "a_total": int(a * 4e11),
        "b_total": int(b * 4e11),
        "change": b - a,
        "low": b - a - half,
        "high": b - a + half,
        "state": state,
        "explains": explains,
        "explains_total": len(explains) * 4,
        "a_per": a,
        "b_per": b * 1.061,
        "a_bars": [max(0.0, a + half * math.sin(at * 1.3)) if a else 0.0 for at in range(16)],
        "b_bars": [max(0.0, b + half * math.sin(at * 2.1)) if b else 0.0 for at in range(12)],
    }


def events_answer(now_s: float, deploys: list[Json]) -> Json:
    """One with the canary, one without a deploy, one that is less."""
    rows = [
        (
            "json::parse(std::string_view, json::Options const&)",
            "checkout",
            now_s - 300,
            0.121,
            0.176,
            deploys[0],
            ["serve_request", "run"],
        ),
        ("tls::encrypt_record", "gateway", now_s - 9000, 0.031, 0.042, None, []),
        ("regex::match", "search-api", now_s - 60_000, 0.062, 0.0, None, ["scan", "step", "next"]),
    ]
    return {"events": [_event(*row) for row in rows], "events_total": len(rows)}


def _event(name: str, service: str, at_s: float, a: float, b: float, deploy: Json | None, explains: list[str]) -> Json:
    text = f'cpu{{service="{service}"}}'
    return {
        "id": f"{int(at_s):x}",
        "cause": "deploy" if deploy else "none",
        "words": f"{name} changed",
        "service": service,
        "function": name,
        "binary": service,
        "at_s": at_s,
        "before": a,
        "after": b,
        "change": b - a,
        "low": b - a - 0.004,
        "high": b - a + 0.004,
        "explains": explains,
        "deploy_id": deploy["id"] if deploy else None,
        "version": deploy["version"] if deploy else None,
        "compare": {
            "a": {"query": text, "from_s": at_s - 3600, "until_s": at_s},
            "b": {"query": text, "from_s": at_s, "until_s": at_s + 720},
        },
    }


def hostmap_answer(span: tuple[float, float], count: int) -> Json:
    """Hosts with a wave of load, one that is busy for a while, one that came late."""
    start_s, until_s = span
    step_s = max(10.0, (until_s - start_s) / 90)
    slots = int((until_s - start_s) / step_s)
    values = [[0.6 + 0.4 * math.sin(at / 11 + host / 3) + 0.01 * host for at in range(slots)] for host in range(count)]
    for at in range(slots // 3, slots // 2):
        if count:
            values[4][at] = 3.1
    if count:
        values[9][: slots // 2] = [None] * (slots // 2)  # type: ignore[list-item]
    hosts = [f"web-{host + 1}" for host in range(count)]
    return {"kind": "cpu", "column": "ns", "unit": "cores", "from_s": start_s, "until_s": until_s, "step_s": step_s, "hosts": hosts,
            "hosts_total": count, "values": values}  # fmt: skip
