# SPDX-License-Identifier: Apache-2.0
"""What tests of more than one folder share: one browser for each process, and who runs beside whom when there are two."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from playwright.sync_api import Browser, expect, sync_playwright

if TYPE_CHECKING:
    from xdist.scheduler import LoadScopeScheduling

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

ONE_BY_ONE = ("tests/bpf/", "tests/e2e/", "tests/agent/cli/")
"""Tests with a kernel, an agent or a whole server to themselves: one worker runs all of them, one after the other."""
NICE = 10
"""Of all other tests, beside those: enough that these have the CPUs when they measure, and not so much that the others stand still."""

# No test may fail because the machine is slow: properties and the browser have all the time there is.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


def _is_one_by_one(nodeid: str) -> bool:
    return nodeid.startswith(ONE_BY_ONE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """For `pytest -n`: a file stays in one process, and so do all that run one by one. What is collected is run, wherever it belongs."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "one by one" if _is_one_by_one(nodeid) else nodeid.partition("::")[0]

    return Scheduling(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """What runs beside the others gives way to them, with all that it starts."""
    if "PYTEST_XDIST_WORKER" in os.environ and not _is_one_by_one(item.nodeid):
        os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    assert CHROMIUM is not None, "no chromium on this machine: make test installs it"
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()
