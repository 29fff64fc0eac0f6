# SPDX-License-Identifier: Apache-2.0
"""TCP on the real kernel: what is counted against what programs in network namespaces of their own are known to have said."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from agent.profilers import tcp
from agent.profilers.cpu import CpuSettings
from agent.profilers.event_host import EventSettings
from agent.profilers.suite import Suite
from agent.records.event_drain import BUCKETS, EventDrain
from tests.support.kernel import assert_balanced_events, rows_of_events
from tests.support.programs import Programs
from tests.support.tcp_peers import ANSWERED, CONNECTIONS, DELAY_S, REMOTE, SENT, scenario

Rows = dict[bytes, dict[str, int]]


@contextmanager
def suite_of_tcp(header_directory: Path) -> Iterator[Suite]:
    with closing(Suite.start(CpuSettings(header_directory=header_directory), EventSettings(), groups=(tcp.GROUP,))) as suite:
        yield suite


@pytest.fixture(scope="module")
def all_sockets(header_directory: Path) -> Iterator[Suite]:
    with suite_of_tcp(header_directory) as suite:
        assert suite.refusals == {}
        yield suite


@pytest.fixture
def suite(all_sockets: Suite) -> Suite:
    """Every socket of every process, in a window that has just begun."""
    all_sockets.drain()
    return all_sockets


def window(suite: Suite) -> EventDrain:
    drain, stacks = suite.drain().events
    assert (drain.kind, stacks.kind) == ("tcp", "tcp_stack")
    assert_balanced_events(drain)
    assert_balanced_events(stacks)
    # What comes in softirq is not the idle task's (A10).
    assert 0 not in drain.keys["pid"]
    return drain


def added(windows: list[EventDrain], pid: int) -> Rows:
    """Rows of one process over several windows."""
    total: Rows = {}
    for drain in windows:
        for name, values in rows_of_events(drain, pid).items():
            row = total.setdefault(name, {})
            for column, value in values.items():
                row[column] = max(row.get(column, 0), value) if column.endswith("_max") else row.get(column, 0) + value
    return total


def part(row: dict[str, int], *columns: str) -> list[int]:
    return [row.get(column, 0) for column in columns]


def test_connections_and_bytes_are_exact_and_belong_to_who_opened_them(suite: Suite) -> None:
    with scenario("talk") as (_, go):
        said = go()
        drain = window(suite)
    server, client = rows_of_events(drain, said["server"]), rows_of_events(drain, said["client"])
    incoming = server[b"in :%d" % said["port"]]
    assert part(incoming, "accepts", "closes", "resets") == [CONNECTIONS, CONNECTIONS, 0]
    assert part(incoming, "bytes_in", "bytes_out") == [CONNECTIONS * SENT, CONNECTIONS * ANSWERED]
    # Half of them by IPv4, which reached a socket of IPv6 as mapped addresses.
    for address in (b"127.0.0.1", b"[::1]"):
        outgoing = client[b"out %s:%d" % (address, said["port"])]
        half = CONNECTIONS // 2
        assert part(outgoing, "connects", "closes", "resets", "refused") == [half, half, 0, 0]
        assert part(outgoing, "bytes_out", "bytes_in") == [half * SENT, half * ANSWERED]
        assert sum(outgoing.get(f"connect_{bucket:02}", 0) for bucket in range(BUCKETS)) == half
        assert sum(outgoing.get(f"rtt_{bucket:02}", 0) for bucket in range(BUCKETS)) == outgoing["rtts"] >= half
        assert outgoing["lifetime_ns"] > outgoing["connect_ns"] > 0
    refused = client[b"out 127.0.0.1:%d" % said["closed_port"]]
    assert part(refused, "refused", "connects", "timeouts", "failed", "resets", "closes") == [7, 0, 0, 0, 0, 0]
    assert set(server) == {b"in :%d" % said["port"]}


@pytest.mark.alike
def test_windows_that_end_amid_connections_lose_and_double_nothing(suite: Suite) -> None:
    """Sockets close while the collector goes through the open ones."""
    with scenario("talk") as (process, go):
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        windows = [window(suite) for _ in range(40)]
        said = go()
        windows.append(window(suite))
        windows.append(window(suite))
    incoming = added(windows, said["server"])[b"in :%d" % said["port"]]
    assert part(incoming, "accepts", "closes") == [CONNECTIONS, CONNECTIONS]
    assert part(incoming, "bytes_in", "bytes_out") == [CONNECTIONS * SENT, CONNECTIONS * ANSWERED]
    outgoing = added(windows, said["client"])
    by_address = [outgoing[b"out %s:%d" % (address, said["port"])] for address in (b"127.0.0.1", b"[::1]")]
    assert sum(row["bytes_out"] for row in by_address) == CONNECTIONS * SENT
    assert sum(row["bytes_in"] for row in by_address) == CONNECTIONS * ANSWERED


def test_connects_stand_under_the_function_that_made_them(suite: Suite, programs: Programs) -> None:
    with programs.running("connector") as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write("\n")
        process.stdin.flush()
        port = int(process.stdout.readline())
        _, stacks = suite.drain().events
    assert stacks.stacks is not None and stacks.object_of_row is not None
    function = programs.functions("connector")["call_peer"]
    rows = np.flatnonzero((stacks.keys["pid"] == process.pid) & (stacks.object_of_row == stacks.objects.index(b"out 127.0.0.1:%d" % port)))
    assert stacks.columns[0].values[rows].sum() == stacks.columns[1].values[rows].sum() == 23
    for row in rows:
        at = int(np.searchsorted(stacks.stacks.hashes, stacks.keys["user_stack"][row]))
        frames = stacks.stacks.addresses[stacks.stacks.bounds[at] : stacks.stacks.bounds[at + 1]]
        assert ((frames >= function.start) & (frames < function.end)).any()


def test_resets_are_counted_on_both_sides(suite: Suite) -> None:
    with scenario("reset") as (_, go):
        said = go()
        rows = rows_of_events(window(suite), said["pid"])
    assert part(rows[b"in :%d" % said["port"]], "accepts", "resets", "closes") == [23, 23, 23]
    assert part(rows[b"out 127.0.0.1:%d" % said["port"]], "connects", "resets", "closes") == [23, 23, 23]


def test_connection_that_stays_is_seen_before_it_closes(suite: Suite) -> None:
    with scenario("linger") as (_, go):
        said = go()
        windows = [window(suite)]
        go()
        windows.append(window(suite))
        go()
        windows.append(window(suite))
    ends = b"out 127.0.0.1:%d" % said["port"], b"in :%d" % said["port"]
    out, back = ([rows_of_events(one, said["pid"]).get(end, {}) for one in windows] for end in ends)
    assert [row.get("bytes_out", 0) for row in out] == [70_001, 13, 0]
    assert [row.get("bytes_in", 0) for row in back] == [70_001, 13, 0]
    assert [row.get("closes", 0) for row in out] == [0, 0, 1]


def test_sockets_that_were_there_before_are_found(header_directory: Path) -> None:
    with scenario("linger") as (_, go), suite_of_tcp(header_directory) as suite:
        said = go()
        rows = rows_of_events(window(suite), said["pid"])
        go()
        go()
        closed = rows_of_events(window(suite), said["pid"])
    assert rows[b"out 127.0.0.1:%d" % said["port"]]["bytes_out"] == 70_001
    assert rows[b"in :%d" % said["port"]]["bytes_in"] == 70_001
    # How long it had lived is not known.
    assert part(closed[b"in :%d" % said["port"]], "closes", "lifetime_ns", "bytes_in") == [1, 0, 13]


def test_listeners_drops_are_those_of_the_kernel(suite: Suite) -> None:
    with scenario("overflow") as (_, go):
        said = go()
        row = rows_of_events(window(suite), said["pid"])[b"in :%d" % said["port"]]
    assert row["listen_drops"] == said["dropped"] > 0
    assert row["backlog_max"] >= 1


@pytest.mark.exact
def test_delay_and_loss_are_those_of_the_way(suite: Suite) -> None:
    if not Path("/dev/net/tun").exists():
        pytest.skip("needs /dev/net/tun")
    with scenario("far") as (_, go):
        said = go()
        rows = rows_of_events(window(suite), said["pid"])
    out = rows[f"out {REMOTE}:{said['port']}".encode()]
    assert said["dropped"] >= 10 and said["syns"] >= 2
    assert part(out, "connects", "bytes_out", "syn_retransmits") == [1, 1_000_003, said["syns"] - 1]
    assert out["retransmits"] == said["again"] >= said["dropped"] - 1
    assert 1_000_000_000 + 2 * DELAY_S * 1e9 <= out["connect_ns"] <= said["connect_s"] * 1e9
    # Smoothed round trips: never shorter than both ways, never longer than that and what the forwarder was late (and 200 ms of late acks).
    assert 2 * DELAY_S * 1e9 <= out["rtt_max_ns"] <= (2 * (DELAY_S + said["late_s"]) + 0.2) * 1e9
    assert sum(out.get(f"rtt_{bucket:02}", 0) for bucket in range(16)) == 0  # bucket 16 begins at 32.8 ms


@pytest.mark.alike
def test_where_a_part_is_followed_it_stands_for_all(header_directory: Path) -> None:
    with suite_of_tcp(header_directory) as suite, scenario("talk") as (_, go):
        ((_group, profiler),) = suite._groups
        assert isinstance(profiler, tcp.TcpProfiler)
        profiler._follow(2)
        said = go()
        drain = window(suite)
        limit = suite.limited()["tcp"]
    row = rows_of_events(drain, said["server"])[b"in :%d" % said["port"]]
    accepts, observed = row["accepts"], row["observed"]
    assert accepts % 2 == 0 and 2 * observed == row["events"]
    # Binomial: 76 are five standard deviations.
    assert abs(accepts - CONNECTIONS) <= 76
    assert part(row, "closes", "bytes_in", "bytes_out") == [accepts, accepts * SENT, accepts * ANSWERED]
    assert 0.4 < limit.seen < 1  # listeners are always followed


@pytest.mark.alike
def test_endpoints_without_room_are_put_together(header_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "SUMS_ENTRIES", 8)
    monkeypatch.setattr(tcp, "MOST_SUMS", 8)
    with suite_of_tcp(header_directory) as suite, scenario("talk") as (_, go):
        said = go()
        drain, _ = suite.drain().events
    assert len(drain) <= 8
    assert_balanced_events(drain)
    rows = rows_of_events(drain, said["client"])
    assert sum(row["connects"] for row in rows.values()) <= CONNECTIONS


def test_kernel_without_the_tracepoint_is_told(header_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As before 4.16, where it had another name (A13)."""
    monkeypatch.setattr(tcp, "RAW_TRACEPOINTS", {"tcp_set_state": "on_tcp_state"})
    monkeypatch.setattr(tcp, "GROUP", tcp.Group(tcp.GROUP.kinds, partial(tcp.spec), tcp.TcpProfiler.start))
    with suite_of_tcp(header_directory) as suite:
        assert suite.kinds == ("cpu",)
        assert suite.refusals == dict.fromkeys(("tcp", "tcp_stack"), "attach to raw tracepoint tcp_set_state: No such file or directory")
