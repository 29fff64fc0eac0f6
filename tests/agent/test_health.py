# SPDX-License-Identifier: Apache-2.0
"""What the agent says of itself: each lack is a flag, and bars nothing else."""

from dataclasses import dataclass, replace

import pytest

from agent.config import Settings
from agent.health import KindFacts, Shortfalls, host_facts
from agent.records.kernel_layout import KernelLayout
from agent.records.limit import Limit

SEEN = KernelLayout((), False, 0)


@dataclass(frozen=True)
class SpoolIs:
    is_memory_only: bool = False


def flags(
    settings: Settings | None = None, layout: KernelLayout = SEEN, spool: SpoolIs | None = None, kinds: KindFacts | None = None
) -> list[str]:
    return list(host_facts(settings or Settings(), layout, spool or SpoolIs(), kinds or KindFacts()).flags)


def test_all_well_is_no_flag() -> None:
    assert flags() == []


def test_each_lack_is_a_flag() -> None:
    assert flags(layout=replace(SEEN, is_hidden=True)) == ["kallsyms_hidden"]
    assert flags(spool=SpoolIs(is_memory_only=True)) == ["spool_memory_only"]


@pytest.mark.parametrize("changed", [{"pid": "7"}, {"cgroup": "/sys/fs/cgroup/x"}])
def test_a_profile_of_a_part_says_so(changed: dict[str, str]) -> None:
    assert flags(replace(Settings(), **changed)) == ["limited"]  # type: ignore[arg-type]


def test_facts_are_those_of_the_settings_and_the_host() -> None:
    facts = host_facts(replace(Settings(), host="web-1", rate_hz=49, window_s=5), SEEN, SpoolIs(), KindFacts())
    assert (facts.host, facts.rate_hz, facts.window_s) == (b"web-1", 49, 5)
    assert facts.online_cpus > 0
    assert facts.kernel_release and facts.agent_version


def test_kind_that_does_not_run_is_a_flag_with_its_reason() -> None:
    kinds = KindFacts({"lock": "no tracepoint contention_begin\nand much more"}, {"offcpu": Limit(0.2, 0.2)})
    assert flags(kinds=kinds) == ["kind_limited:offcpu:20", "kind_off:lock:no tracepoint contention_begin"]


def test_kind_that_counts_everything_and_times_a_part_says_so() -> None:
    assert flags(kinds=KindFacts({}, {"syscall": Limit(1.0, 0.03)})) == ["kind_timed:syscall:3"]


def test_unwinding_that_is_off_or_lacks_tables_is_told() -> None:
    lacking = Shortfalls(denial="locks up every CPU: a lock\nand more", evicted=7, missing=23, waiting=5, rules_refused=3, left_out=2)
    facts = host_facts(Settings(), SEEN, SpoolIs(), KindFacts(), lacking)
    counts = ["unwind_rules_refused:3", "unwind_tables_evicted:7", "unwind_tables_missing:23", "unwind_tables_waiting:5"]
    assert list(facts.flags) == ["unwind_left_out:2", "unwind_off:locks up every CPU: a lock", *counts]


def test_new_processes_that_were_put_off_are_told() -> None:
    assert list(host_facts(Settings(), SEEN, SpoolIs(), KindFacts(), Shortfalls(put_off=23)).flags) == ["processes_put_off:23"]
