# SPDX-License-Identifier: Apache-2.0
"""What the agent costs is measured, and memory goes back without taking anything along that is still needed."""

from pathlib import Path

from agent.runner.own_cost import OwnCost, give_back_code, give_back_memory, resident_bytes

_ONLY_OTHERS = """\
7f0000000000-7f0000001000 r-xp 00000000 08:01 7                          /usr/lib/relocated.so
Size:                  4 kB
Rss:                   4 kB
Anonymous:             4 kB
7f0000002000-7f0000003000 rw-p 00000000 08:01 7                          /usr/lib/data.so
Rss:                   4 kB
Anonymous:             0 kB
7f0000004000-7f0000005000 r-xp 00000000 00:00 0                          [vdso]
Rss:                   4 kB
Anonymous:             0 kB
7f0000006000-7f0000007000 r--p 00000000 00:00 0
Rss:                   4 kB
Anonymous:             0 kB
"""


def test_cost_is_what_came_since_the_last_call() -> None:
    bpf_ns = iter((7, 30, 30))
    cost = OwnCost(lambda: next(bpf_ns), lambda: 23)
    sum(range(300_000))
    first, second = cost.since_last(), cost.since_last()
    assert first.cpu_ns > 1_000_000
    assert (first.bpf_ns, first.map_bytes) == (23, 23)
    assert (second.bpf_ns, second.rss_bytes > 1 << 20) == (0, True)


def test_code_goes_back_and_runs_again() -> None:
    before = resident_bytes()
    assert give_back_code() > 1 << 20
    assert resident_bytes() < before
    give_back_memory()
    assert sum(range(1000)) == 499_500


def test_pages_that_no_file_holds_are_left_alone(tmp_path: Path) -> None:
    smaps = tmp_path / "smaps"
    smaps.write_text(_ONLY_OTHERS)
    assert give_back_code(smaps) == 0
