# SPDX-License-Identifier: Apache-2.0
"""Two versions of a C++ service on this machine at one request rate, each under an agent of its own: the report names what changed.

Run by `make soak`: some minutes, because a report needs two minutes of both versions, and as many more as this machine's noise asks for.
Version 2 computes its checksum with a fifth more rounds and has dropped `legacy_escape`. Nobody chooses a range or a function.
"""

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from server.cli.children import Child
from tests.support.kernel import lacking_for_bpf
from tests.support.servers import RunningServer, serving

pytestmark = pytest.mark.skipif(bool(lacking_for_bpf()), reason=f"BPF: {lacking_for_bpf()}")

REQUESTS_PER_S = 40
LONGEST_S = 900.0
LONGEST_START_S = 240.0
"""Of an agent on a busy machine: it compiles its programs first."""
SOURCE = r"""
#include <cstdint>
#include <ctime>
static volatile std::uint64_t sink;
static inline __attribute__((always_inline)) void work(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sink = sink * 6364136223846793005u + 1442695040888963407u;
}
namespace shop {
__attribute__((noinline)) void parse_order(unsigned n) { work(n * 30); asm volatile(""); }
__attribute__((noinline)) void render_page(unsigned n) { work(n * 25); asm volatile(""); }
__attribute__((noinline)) void checksum(unsigned n) { work(VERSION == 2 ? n * 36 : n * 30); asm volatile(""); }
__attribute__((noinline)) void legacy_escape(unsigned n) { work(n * 15); asm volatile(""); }
__attribute__((noinline)) void serve(unsigned n)
{
	parse_order(n);
	render_page(n);
	checksum(n);
	if (VERSION == 1)
		legacy_escape(n);
	asm volatile("");
}
}
int main()
{
	/* One request each 1/RATE s by the clock, whatever it costs. */
	timespec due;
	clock_gettime(CLOCK_MONOTONIC, &due);
	std::uint32_t random = 7;
	for (;;) {
		due.tv_nsec += 1000000000L / RATE;
		if (due.tv_nsec >= 1000000000L)
			due.tv_sec++, due.tv_nsec -= 1000000000L;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr);
		random = random * 1664525u + 1013904223u;
		shop::serve(24000 + random % 24000);
	}
}
"""


def built(folder: Path, version: int) -> Path:
    """One version of the service; all have one name, as builds of one program do."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++ on this machine: apt-get install g++")
    place = folder / str(version)
    place.mkdir()
    (place / "shop.cc").write_text(SOURCE)
    flags = ["-O1", "-g", f"-DVERSION={version}", f"-DRATE={REQUESTS_PER_S}"]
    subprocess.run([compiler, *flags, "-o", place / "shop", place / "shop.cc"], check=True, timeout=120)
    return place / "shop"


@contextmanager
def host(server: RunningServer, folder: Path, version: int) -> Iterator[None]:
    """A "host": the service, and an agent that sees nothing else."""
    environment = {**os.environ, "OTEL_RESOURCE_ATTRIBUTES": f"service.version={version}.0"}
    process = subprocess.Popen([built(folder, version)], env=environment)
    try:
        command = ["agent.cli", "run", "--server", server.grpc, "--data-dir", str(folder / f"agent-{version}"), "--host", f"web-{version}"]
        child = Child.start("emberwatch-agent", [*command, "--pid", str(process.pid), "--kinds", "cpu"], LONGEST_START_S)
        try:
            yield
        finally:
            child.stop(20)
    finally:
        process.kill()
        process.wait()


def report_of(server: RunningServer) -> dict[str, Any] | None:
    """The report of the only deploy, once there is one."""
    found = server.get("deploys", service="shop")["deploys"]
    return server.get(f"deploys/{found[0]['id']}") if found else None


def told(server: RunningServer, **note: object) -> None:
    """What a pipeline says of the new version."""
    body = json.dumps({"service": "shop", "version": "2.0", **note}).encode()
    request = urllib.request.Request(f"http://{server.http}/api/v1/deploys", body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=30).close()


def test_the_report_names_both_changes_and_nothing_else(tmp_path: Path) -> None:
    with serving(tmp_path / "server") as server, ExitStack() as hosts:
        hosts.enter_context(host(server, tmp_path, 1))
        until_s = time.monotonic() + 120
        while not server.get("series", query='cpu{service="shop"}')["values"] and time.monotonic() < until_s:
            time.sleep(1)
        time.sleep(15)
        hosts.enter_context(host(server, tmp_path, 2))
        told(server, annotation="live", requests_per_s=REQUESTS_PER_S)
        until_s, answer = time.monotonic() + LONGEST_S, None
        names: set[str] = set()
        while len(names) < 2 and time.monotonic() < until_s:
            time.sleep(2)
            answer = report_of(server)
            names = {row["name"] for row in answer["report"]["rows"]} if answer and answer["report"] else set()
    assert answer is not None and answer["report"] is not None, answer
    print(json.dumps(answer, indent=1))
    rows = {row["name"].partition("(")[0]: row for row in answer["report"]["rows"]}
    assert set(rows) == {"shop::checksum", "shop::legacy_escape"}
    assert rows["shop::legacy_escape"]["state"] == "vanished"
    slower = rows["shop::checksum"]["b_per"] / rows["shop::checksum"]["a_per"]
    assert 1.1 < slower < 1.3, slower
    assert answer["report"]["cpu"]["measure"] == "CPU per request"
    assert answer["deploy"]["verdict"]["words"].startswith("CPU per request")
    assert answer["deploy"]["compare"]["is_canary"]
