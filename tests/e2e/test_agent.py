# SPDX-License-Identifier: Apache-2.0
"""A real agent before a real server: what it lost is what the page says, and short lives have names."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from server.cli.children import Child
from tests.support.kernel import lacking_for_bpf
from tests.support.programs import Programs
from tests.support.servers import READY_S, RunningServer, serving

pytestmark = pytest.mark.skipif(bool(lacking_for_bpf()), reason=f"BPF: {lacking_for_bpf()}")

MARKED = "[stack lost: map full]"
BRISKLY = ("--rate-hz", "199", "--window-s", "1")


@contextmanager
def sampling(server: RunningServer, data: Path, *arguments: str) -> Iterator[None]:
    """An agent at work until the block ends; by then the server has its last window."""
    command = ["agent.cli", "run", "--server", server.grpc, "--data-dir", str(data), "--kinds", "cpu", *arguments]
    child = Child.start("emberwatch-agent", command, READY_S)
    try:
        yield
    finally:
        assert child.stop(60) == 0


def shares_of(server: RunningServer, selector: str) -> dict[str, float]:
    """Share of the total of each function."""
    answer = server.get("top", query=selector, limit="1000")
    return {row["name"]: row["total_share"] for row in answer["rows"]}


def named_shares(server: RunningServer, service: str) -> dict[str, float]:
    """Shares once all of the graph has names, which an agent at work brings when it is asked; what is there after a minute else."""
    until_s = time.monotonic() + 60
    while True:
        shares = shares_of(server, f'cpu{{service="{service}"}}')
        is_named = shares and not any(name.startswith("[unknown]") for name in shares)
        if is_named or time.monotonic() > until_s:
            return shares
        time.sleep(0.3)


def test_stacks_that_found_no_room_are_counted_on_the_page(tmp_path: Path) -> None:
    """Eight stacks fit into the map; what is stored without its stack is exactly what is told as lost."""
    program = Programs(tmp_path)
    with serving(tmp_path / "server") as server:
        with (
            program.running("many_stacks") as process,
            sampling(server, tmp_path / "agent", "--stacks-entries", "8", "--pid", str(process.pid), "--rate-hz", "199"),
        ):
            time.sleep(4)
        graph = server.get("flamegraph", query='cpu{service="many_stacks"}', column="samples", width_px="100000")
        functions, nodes, quality = graph["functions"], graph["nodes"], graph["quality"]
        marked = {i for i, name in enumerate(functions["name"]) if graph["strings"][name] == MARKED}
        stored_without = _below(nodes, marked)
    assert quality["expected"] == quality["stored"] + quality["idle"] + quality["filtered"] + sum(quality["lost"].values())
    assert stored_without > 100
    assert quality["stack_lost"]["STACK_MAP_FULL"] == stored_without
    assert quality["stack_lost_share"] == pytest.approx(stored_without / quality["stored"])


def _below(nodes: dict[str, list[int]], functions: set[int]) -> int:
    """What stands below any of the functions, each sample once: code of the kernel may have been stored below a user stack that was not."""
    found, inside = 0, len(nodes["depth"])
    for function, depth, total in zip(nodes["function"], nodes["depth"], nodes["total"], strict=True):
        if depth > inside:
            continue
        inside = depth if function in functions else len(nodes["depth"])
        found += total if function in functions else 0
    return found


@contextmanager
def shell(script: str) -> Iterator["subprocess.Popen[str]"]:
    """A shell that waits for lines to run its script by. An agent limited to it has few binaries to name, whatever else the host runs."""
    pipe = subprocess.PIPE
    with subprocess.Popen(["/bin/sh", "-c", script], stdin=pipe, stderr=subprocess.DEVNULL, text=True, process_group=0) as process:
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def tell(process: "subprocess.Popen[str]", line: str) -> None:
    assert process.stdin
    process.stdin.write(line + "\n")
    process.stdin.flush()


def test_process_that_lives_a_second_is_named(tmp_path: Path) -> None:
    """Its file is gone and it has exited before anyone asks for its names; still the innermost frame of 95 % of its samples has a name."""
    built = Programs(tmp_path).path("spin")
    briefs = [tmp_path / name for name in ("brief-a", "brief-b", "brief-c")]
    for brief in briefs:
        brief.write_bytes(built.read_bytes())
        brief.chmod(0o755)
    with (
        shell("while read brief; do timeout -s KILL 1 $brief; rm $brief; done") as process,
        serving(tmp_path / "server") as server,
        sampling(server, tmp_path / "agent", *BRISKLY, "--pid", str(process.pid)),
    ):
        for brief in briefs:
            tell(process, str(brief))
        until_s = time.monotonic() + 60
        while any(brief.exists() for brief in briefs) and time.monotonic() < until_s:
            time.sleep(0.1)
        for brief in briefs:
            shares = named_shares(server, brief.name)
            assert shares.get("main", 0) > 0.5, shares
            leaves = server.get("top", query=f'cpu{{service="{brief.name}"}}', limit="1000")["rows"]
            assert sum(row["self_share"] for row in leaves if row["name"].startswith("[")) <= 0.05, leaves


def test_exec_and_fork_do_not_mix_names(tmp_path: Path) -> None:
    """The same PID runs two programs, one after the other: no frame of the first stands in the second, and the other way round."""
    programs = Programs(tmp_path)
    first, second = programs.path("shares"), programs.path("recursion")
    with (
        shell(f"read go; (timeout -s KILL 1 {first} & p=$!; wait $p; exec {second} 40)") as process,
        serving(tmp_path / "server") as server,
        sampling(server, tmp_path / "agent", *BRISKLY, "--pid", str(process.pid)),
    ):
        tell(process, "go")
        shares, recursion = named_shares(server, "shares"), named_shares(server, "recursion")
    assert "busy_seventy" in shares
    assert "descend" not in shares
    assert "descend" in recursion
    assert not {"busy_seventy", "busy_twenty", "busy_ten"} & set(recursion)


def test_agent_that_starts_before_its_server_loses_nothing(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        grpc = f"127.0.0.1:{free.getsockname()[1]}"
    command = ["agent.cli", "run", "--server", grpc, "--data-dir", str(tmp_path / "agent"), "--kinds", "cpu", "--window-s", "1"]
    child = Child.start("emberwatch-agent", command, READY_S)
    try:
        began_s = time.time()
        time.sleep(3)
        alone_until_s = time.time()
        with serving(tmp_path / "server", grpc=grpc) as server:
            until_s = time.monotonic() + 60
            while time.monotonic() < until_s:
                answer = server.get("flamegraph", **{"from": f"{began_s:.3f}"}, until=f"{alone_until_s:.3f}", width_px="1")
                if answer["quality"]["expected"]:
                    break
                time.sleep(0.5)
            assert child.stop(60) == 0
            quality = server.get("flamegraph", **{"from": f"{began_s - 2:.3f}"})["quality"]
    finally:
        child.stop(5)
    cpus, seconds = os.cpu_count() or 1, alone_until_s - began_s
    assert answer["quality"]["expected"] > 0.5 * seconds * cpus * 99, "windows from before the server are there"
    assert quality["expected"] == quality["stored"] + quality["idle"] + quality["filtered"] + sum(quality["lost"].values())
    assert not {"SPOOL_EVICTED", "SPOOL_CORRUPT"} & set(quality["lost"])
