# SPDX-License-Identifier: Apache-2.0
"""A deploy and what is said of it: the nouns, and the JSON they are kept as."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from server.query.timerange import TimeRange


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison."""

    version: str
    range: TimeRange


@dataclass(frozen=True, slots=True)
class Comparison:
    """What shows the effect of a deploy best: `before` is the replaced version, `after` the new one."""

    is_canary: bool
    """Both ran in the same minutes, and those are compared."""
    before: Side
    after: Side


@dataclass(frozen=True, slots=True)
class Rates:
    """Requests a second that one host answers, as a pipeline told; 0 unknown."""

    before: float = 0.0
    after: float = 0.0

    @property
    def is_known(self) -> bool:
        """Both sides can be held against requests."""
        return self.before > 0 and self.after > 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a report comes to."""

    words: str
    """For example "CPU per host +6 %: 2 functions"."""
    change: float
    """Of CPU per host, or per request; 0.06 is 6 % more."""
    is_noise: bool
    """That change; functions are told apart from noise one by one."""
    functions: int
    """Changed beyond noise, each subtree once."""
    is_final: bool
    """The report will not be made anew."""
    made_unix_ns: int


@dataclass(frozen=True, slots=True)
class Deploy:
    """One version of a service that came after another."""

    deploy_id: str
    service: str
    version: str
    replaced: str
    first_seen_unix_ns: int
    hosts_done: int
    """Hosts on which it has been seen."""
    hosts_total: int
    """Those, and the ones that still ran the replaced version when it came."""
    annotation: str | None
    comparison: Comparison
    is_return: bool = False
    """The version had run before: a rollback."""
    first_by_host: Mapping[str, int] = field(default_factory=dict)
    """When each host was first seen with it, unix nanoseconds."""
    rates: Rates = Rates()
    verdict: Verdict | None = None
    """None before there is a report."""


def body_of(deploy: Deploy) -> dict[str, Any]:
    """Give what is kept; notes and rates are kept apart, because they may be written before the deploy is seen."""
    comparison, verdict = deploy.comparison, deploy.verdict
    return {
        "service": deploy.service,
        "version": deploy.version,
        "replaced": deploy.replaced,
        "first_seen": deploy.first_seen_unix_ns,
        "hosts_done": deploy.hosts_done,
        "hosts_total": deploy.hosts_total,
        "is_return": deploy.is_return,
        "first_by_host": dict(deploy.first_by_host),
        "is_canary": comparison.is_canary,
        "sides": [[side.version, side.range.from_unix_ns, side.range.until_unix_ns] for side in (comparison.before, comparison.after)],
        "verdict": None
        if verdict is None
        else [verdict.words, verdict.change, verdict.is_noise, verdict.functions, verdict.is_final, verdict.made_unix_ns],
    }


def deploy_of(deploy_id: str, body: Mapping[str, Any]) -> Deploy:
    """Read what `body_of` made."""
    before, after = (Side(version, TimeRange(start, until)) for version, start, until in body["sides"])
    return Deploy(
        deploy_id=deploy_id,
        service=body["service"],
        version=body["version"],
        replaced=body["replaced"],
        first_seen_unix_ns=body["first_seen"],
        hosts_done=body["hosts_done"],
        hosts_total=body["hosts_total"],
        annotation=None,
        comparison=Comparison(body["is_canary"], before, after),
        is_return=body["is_return"],
        first_by_host=body["first_by_host"],
        verdict=None if body["verdict"] is None else Verdict(*body["verdict"]),
    )
