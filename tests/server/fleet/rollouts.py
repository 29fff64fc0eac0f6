# SPDX-License-Identifier: Apache-2.0
"""Services that are rolled out minute by minute into a fake store, with known costs of their functions."""

from collections.abc import Mapping

import numpy as np

from server.query.profile_query import ProfileQuery
from tests.server.query.fakes import START_NS, WINDOW_NS, FakeNamer, FakeStore

Costs = Mapping[str, int]
"""Samples a window by function; what main does itself is "main"."""


class Rollout:
    """A store that is filled window by window, and a query whose clock stands at the end of the last one."""

    def __init__(self, seed: int = 7) -> None:
        self.store = FakeStore()
        self.now_ns = START_NS
        self.query = ProfileQuery(self.store, FakeNamer(), lambda: self.now_ns)
        self._random = np.random.default_rng(seed)

    def run(self, windows: int, hosts: Mapping[str, str], costs: Mapping[str, Costs], service: str = "shop") -> None:
        """Let hosts (name to version) run for so many windows; each function draws its samples around its version's cost."""
        for _ in range(windows):
            for host, version in hosts.items():
                for function, mean in costs[version].items():
                    frames = ["main"] if function == "main" else ["main", function]
                    self.store.add([(service, host, "t", frames, int(self._random.poisson(mean)))], self.now_ns, version)
            self.now_ns += WINDOW_NS


OLD: Costs = {"main": 20, "parse": 300, "render": 300, "zip": 200, "legacy": 120}
NEW: Costs = {"main": 20, "parse": 300, "render": 300, "zip": 240}
"""zip is 20 % slower, legacy is gone."""
