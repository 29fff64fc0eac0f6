# SPDX-License-Identifier: Apache-2.0
"""`emberwatch deploy`: what was deployed, what a deploy changed, and what a pipeline says of it."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass

from server.cli.ask import Api
from server.cli.formats import Json, percent, safe
from server.errors import ServerError
from server.fleet.words import points
from server.query.timerange import SECOND_NS, show_time

_POLL_S = 2.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command was given. `version` "" lists; a note or a rate is sent, else the report is shown."""

    service: str
    version: str
    note: str | None
    requests_per_s: float | None
    requests_per_s_before: float | None
    start: str
    wait_s: float
    """How long a report is waited for."""


def deploy_body(api: Api, asked: Asked, sleep: Callable[[float], None] = time.sleep) -> Json:
    """Do what was asked; gives the answer of the API. Raises BadRequest or ServerError."""
    if not asked.version:
        return api.get_json("deploys", service=asked.service, **{"from": asked.start})
    told = {
        "annotation": asked.note,
        "requests_per_s": asked.requests_per_s,
        "requests_per_s_before": asked.requests_per_s_before,
    }
    told = {name: value for name, value in told.items() if value is not None}
    if told:
        return api.post_json("deploys", {"service": asked.service, "version": asked.version, **told})
    until_s = time.monotonic() + asked.wait_s
    while True:
        answer = _report(api, asked)
        if answer and (answer["report"] or not asked.wait_s):
            return answer
        if time.monotonic() >= until_s:
            missing = answer["missing"] if answer else f"no deploy of {asked.service} to {asked.version} since {asked.start}"
            raise ServerError(f"there is no report: {missing}")
        sleep(_POLL_S)


def render_deploys(answer: Json) -> str:
    """Make text of what `deploy_body` gave."""
    if "deploys" in answer:
        return _list(answer["deploys"])
    if "report" in answer:
        return _one(answer)
    said = [safe(answer["annotation"])] if answer["annotation"] else []
    said += [f"{answer['requests_per_s']:g} requests/s a host"] if "requests_per_s" in answer else []
    return f"{safe(answer['service'])} {safe(answer['version'])}: {', '.join(said) or 'note taken back'}\n"


def _report(api: Api, asked: Asked) -> Json | None:
    """The latest deploy of the version."""
    found = api.get_json("deploys", service=asked.service, **{"from": asked.start})["deploys"]
    deploy = next((one for one in found if one["version"] == asked.version), None)
    return None if deploy is None else api.get_json(f"deploys/{deploy['id']}")


def _list(found: list[Json]) -> str:
    if not found:
        return "no version replaced another in this range\n"
    cells = [
        (
            show_time(int(one["first_seen_s"]) * SECOND_NS),
            safe(one["service"]),
            f"{safe(one['replaced'])} -> {safe(one['version'])}",
            f"{one['hosts_done']}/{one['hosts_total']} hosts",
            _verdict(one),
            safe(one["annotation"] or "").replace("\\x0a", " "),
        )
        for one in found
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(6)]
    return "".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in cells)


def _one(answer: Json) -> str:
    deploy, report = answer["deploy"], answer["report"]
    came = "came back after" if deploy["is_return"] else "replaced"
    head = f"{safe(deploy['service'])} {safe(deploy['version'])} {came} {safe(deploy['replaced'])}"
    lines = [f"{head} at {show_time(int(deploy['first_seen_s']) * SECOND_NS)}, {deploy['hosts_done']} of {deploy['hosts_total']} hosts"]
    if report is None:
        return "\n".join([*lines, f"no report yet: {answer['missing']}"]) + "\n"
    how = "both versions in the same minutes" if deploy["compare"]["is_canary"] else "before and after"
    lines += [f"{_verdict(deploy)} ({how})", ""]
    for row in report["rows"]:
        interval = f"{points(row['low'])} to {points(row['high'])}"
        shares = f"{percent(row['a_share'])} -> {percent(row['b_share'])}"
        lines.append(f"{points(row['change']):>6} points  {interval:<16}  {shares:<18}  {_state(row):<8}  {safe(row['name'])}")
    if not report["rows"]:
        lines.append("no function changed beyond noise")
    return "\n".join([*lines, *(safe(note) for note in report["notes"])]) + "\n"


def _state(row: Json) -> str:
    return {"new": "new", "vanished": "vanished"}.get(row["state"], "more" if row["change"] > 0 else "less")


def _verdict(deploy: Json) -> str:
    return str(deploy["verdict"]["words"]) if deploy["verdict"] else "no report yet"


def as_json(answer: Json) -> str:
    """Write the answer as it is."""
    return json.dumps(answer) + "\n"
