# SPDX-License-Identifier: Apache-2.0
"""The whole path of design and README: what goes in at one end comes out at the other, or is counted as lost by reason."""

import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from agent.collect.encode import Numbering, parcels_from_batch
from agent.collect.window import WindowBuilder
from agent.records.event_drain import WindowDrain
from agent.records.process import MappingKind, PerfMap
from agent.records.window import WindowTime
from agent.ship.client import Client
from agent.ship.sender import Sender, Step
from agent.ship.spool import Spool
from emberwatch.v1 import marks_pb2 as marks
from server.interop.folded import import_text
from tests.support import drains
from tests.support.kernel import lacking_for_bpf
from tests.support.programs import Programs
from tests.support.servers import serving, serving_until_commit

APP = drains.elf("app")
AGENT_ID = bytes(range(16))
NAMED, UNNAMED, UNLOCATED, LOST = 23, 7, 5, 11


def known_window(start_unix_ns: int, sequence: int) -> tuple[list[object], int]:
    """Parcels of one window with 35 samples in three stacks, 11 lost ones and 13 idle ticks; and what is lost when they are: 46."""
    perf_map = PerfMap(np.array([0x7000_0000], np.uint64), np.array([0x7000_1000], np.uint64), (b"hot;function\n</script>",))
    app = drains.process(
        41,
        drains.mapped(0x40_1000, 0x40_A000, 0x1000, binary=APP),
        drains.mapped(0x7000_0000, 0x7000_1000, kind=MappingKind.JIT),
        perf_map=perf_map,
    )
    window = drains.DrainOf()
    window.row(41, NAMED, user=[0x7000_0010, 0x40_1500], comm=b"worker-17")
    window.row(41, UNNAMED, user=[0x40_1234, 0x40_1500], comm=b"worker-9")
    window.row(41, UNLOCATED, user=[0xDEAD_0000, 0x40_1500], comm=b"a;b c\n\xff")
    drain = window.drain(idle=13, lost={marks.LOSS_REASON_MAP_FULL: LOST})
    assert drain.counts.sum() == NAMED + UNNAMED + UNLOCATED
    batch = WindowBuilder().build(WindowDrain(drain), lambda _: app, drains.NO_LAYOUT, drains.facts())
    drains.assert_balanced(batch.accounts[0])
    assert batch.accounts[0].stored == sum(drains.rows_of_batch(batch).values()) == 35
    parcels = parcels_from_batch(batch, WindowTime(start_unix_ns, start_unix_ns + 10 * 10**9), Numbering(start_unix_ns, sequence))
    return list(parcels), sum(parcel.samples for parcel in parcels)


def a_slot_ago() -> int:
    """The start of the slot before this one, UTC in nanoseconds."""
    return (time.time_ns() // (10 * 10**9) - 1) * 10 * 10**9


def sender_of(spool: Spool, grpc: str) -> tuple[Sender, Client]:
    client = Client(grpc, deadline_s=10)
    return Sender(spool, client.push, AGENT_ID), client


def test_known_samples_are_the_same_at_every_hop(tmp_path: Path) -> None:
    parcels, samples = known_window(a_slot_ago(), 1)
    assert samples == 35 + LOST
    spool = Spool(tmp_path / "spool", time.time)
    for parcel in parcels:
        spool.append(parcel)  # type: ignore[arg-type]
    with serving(tmp_path / "server") as server:
        sender, client = sender_of(spool, server.grpc)
        assert [sender.step(), sender.step()] == [Step.SENT, Step.EMPTY]
        client.close()
        graph = server.get("flamegraph", query='cpu{service="web"}')
        assert graph["samples"] == 35
        assert graph["total"] == graph["nodes"]["total"][0] == 35 * drains.PERIOD_NS
        assert sum(graph["nodes"]["self"]) == graph["total"]
        quality = graph["quality"]
        assert quality["expected"] == quality["stored"] + quality["idle"] + quality["filtered"] + sum(quality["lost"].values())
        assert (quality["stored"], quality["idle"], quality["lost"]) == (35, 13, {"MAP_FULL": LOST})
        folded = server.text("flamegraph", query='cpu{service="web"}', format="folded", group="thread")
    stacks = import_text(folded)
    assert not stacks.rejected
    by_leaf = {stack.frames[-1].name: (stack.thread, stack.count) for stack in stacks.stacks}
    assert by_leaf["hot;function\n</script>"] == ("worker-N", NAMED)
    assert by_leaf["[unknown] app+0x401234"] == ("worker-N", UNNAMED)
    assert by_leaf["[no mapping]"][1] == UNLOCATED


def test_server_killed_between_commit_and_answer_stores_once(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        grpc = f"127.0.0.1:{free.getsockname()[1]}"
    spool = Spool(tmp_path / "spool", time.time)
    for parcel in known_window(a_slot_ago(), 1)[0]:
        spool.append(parcel)  # type: ignore[arg-type]
    with serving_until_commit(tmp_path / "server", grpc) as dying:
        sender, client = sender_of(spool, grpc)
        until_s = time.monotonic() + 60
        while dying.poll() is None and time.monotonic() < until_s:
            assert sender.step() is Step.DELAYED
        client.close()
        assert dying.wait(60) == -9
    assert spool.state().records == 1, "what was not answered stays in the spool"
    with serving(tmp_path / "server", grpc=grpc) as server:
        sender, client = sender_of(spool, grpc)
        assert server.get("flamegraph", query="cpu{}")["samples"] == 35, "it was committed before the kill"
        assert sender.step() is Step.SENT
        client.close()
        assert server.get("flamegraph", query="cpu{}")["samples"] == 35, "the second delivery is a duplicate"
    assert spool.state().records == 0


@pytest.mark.skipif(bool(lacking_for_bpf()), reason=f"BPF: {lacking_for_bpf()}")
def test_recorded_program_is_named_and_its_shares_are_true(tmp_path: Path) -> None:
    """From its first instruction, through BPF, both processes and the API, to standard output."""
    program = Programs(tmp_path).path("shares")
    command = [sys.executable, "-m", "server.cli", "record", "--rate", "499", "--duration", "6", "--", str(program)]
    folded = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    stacks = import_text(folded)
    assert not stacks.rejected, "nothing but the answer goes to standard output"
    total = sum(stack.count for stack in stacks.stacks)
    assert total > 700
    # The shell that holds the command may meet a tick inside exec, while the name is still its own.
    assert sum(stack.count for stack in stacks.stacks if stack.thread != "shares") <= 0.01 * total
    assert {stack.thread for stack in stacks.stacks} <= {"shares", "sh"}
    for name, share in (("busy_seventy", 0.7), ("busy_twenty", 0.2), ("busy_ten", 0.1)):
        assert sum(stack.count for stack in stacks.stacks if name in {frame.name for frame in stack.frames}) / total == pytest.approx(
            share, abs=0.03
        )
    assert not list(Path("/tmp").glob("emberwatch-record-*")), "the private store is thrown away"
