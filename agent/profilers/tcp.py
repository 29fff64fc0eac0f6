# SPDX-License-Identifier: Apache-2.0
"""TCP by process and endpoint: connections, bytes, losses, round trips of all network namespaces (kind tcp).

window:  flip -> is_settling = 1, wait -> go through open sessions -> is_settling = 0 -> those that closed meanwhile -> drain
"""

import logging
import os
import struct
from collections.abc import Sequence
from contextlib import ExitStack

import numpy as np
import numpy.typing as npt

from agent.errors import KernelError
from agent.kernel import program as kernel
from agent.kernel.program import BufferedMap, Iterator, MapShape, ProgramSpec, ProgramType
from agent.profilers.event_host import ClosedWindow, EventHost, Group, Scratch, StackedProfiler
from agent.profilers.tcp_connects import CONNECT_KEY, CONNECT_SUMS, rows_of_connects
from agent.profilers.tcp_following import Following
from agent.profilers.tcp_rows import TCP_KEY, TCP_SUMS, rows_of_endpoints
from agent.records.event_drain import EventAccount, EventDrain
from agent.records.limit import Limit
from emberwatch.v1.marks_pb2 import LossReason

log = logging.getLogger(__name__)

KIND, STACKS_KIND = "tcp", "tcp_stack"
RAW_TRACEPOINTS = {
    "inet_sock_set_state": "on_tcp_state",
    "tcp_receive_reset": "on_tcp_reset",
    "tcp_send_reset": "on_tcp_reset",
    "tcp_retransmit_synack": "on_tcp_synack",
    "tcp_destroy_sock": "on_tcp_destroy",
}
TCP_COUNTS = np.dtype(
    [
        (name, "<u8")
        for name in (
            "events",
            "observed",
            "stored",
            "filtered",
            "map_full",
            "map_busy",
            "sessions_full",
            "unowned",
            "others",
            "stacks_taken",
            "stacks_lost",
        )
    ]
)
"""struct tcp_counts in bpf/shared/tcp_records.h: one CPU and buffer."""
LEAST_SESSIONS, MOST_SESSIONS = 1 << 13, 1 << 17
SESSION_SHARE = 1 << 18
"""Bytes of memory of the host for each session there is room for: 16,384 with 4 GiB, each of 192 bytes."""
SUMS_ENTRIES, MOST_SUMS = 1024, 1 << 14
CONNECT_ENTRIES, MOST_CONNECTS = 512, 1 << 14
STACKS_PER_S = 100
"""Connects a second and CPU whose stack is taken; the others are lost to the stacks, not to the sums."""
CHUNK = 1024
_SETTINGS = struct.Struct("<QIIQII")
_LISTENERS, _OTHERS = 3, 0
_KEY_ZERO = (0).to_bytes(4, "little")


def session_entries(memory_bytes: int) -> int:
    """Sessions that there is room for, by the memory of the host: a power of two."""
    return min(max(1 << (memory_bytes // SESSION_SHARE).bit_length() - 1, LEAST_SESSIONS), MOST_SESSIONS)


def spec() -> ProgramSpec:
    """What is loaded on this host."""
    iterators = ("bpf_iter__bpf_map_elem", "bpf_iter__task_file")
    return ProgramSpec(
        source="tcp.bpf.c",
        functions=dict.fromkeys((*RAW_TRACEPOINTS.values(), "on_tcp_connect"), ProgramType.RAW_TRACEPOINT)
        | dict.fromkeys(iterators, ProgramType.ITERATOR),
        maps=("tcp_settings", "tcp_sessions", "closed_sessions", "tcp_listeners", "tcp_sums", "tcp_counts", "tcp_connects"),
        defines={"TCP_SESSION_ENTRIES": session_entries(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))},
    )


class TcpProfiler(StackedProfiler):
    """Counts from start() to close()."""

    def __init__(self, host: EventHost, closing: ExitStack) -> None:
        super().__init__(host, closing)
        self._program = host.program
        sums = MapShape("tcp_sums", TCP_KEY, TCP_SUMS, MOST_SUMS, CHUNK)
        self._sums = BufferedMap(self._program.map("tcp_sums"), sums, SUMS_ENTRIES)
        closing.callback(self._sums.close)
        connects = MapShape("tcp_connects", CONNECT_KEY, CONNECT_SUMS, MOST_CONNECTS, CHUNK)
        self._connects = BufferedMap(self._program.map("tcp_connects"), connects, CONNECT_ENTRIES)
        closing.callback(self._connects.close)
        host.install_finisher(Scratch.TCP, "on_tcp_connect")
        self._most_stacks = max(1, int(STACKS_PER_S * host.settings.window_s))
        self._one_in = 1
        self._limit = Limit()
        self._before = np.zeros(kernel.possible_cpu_count(), np.uint64)
        self._following = Following(self._events_per_cpu, self._follow, host.settings.most_per_s, host.now_ns)
        self._open_sessions = Iterator(self._program.function("bpf_iter__bpf_map_elem"), self._program.map("tcp_sessions"))
        closing.callback(self._open_sessions.close)
        self._write_settings(0)
        for tracepoint, function in RAW_TRACEPOINTS.items():
            closing.callback(kernel.close, self._program.open_raw_tracepoint(tracepoint, function))
        self._find_open_sockets()

    def drain(self, window: ClosedWindow) -> Sequence[EventDrain]:
        """Both kinds."""
        self._settle_open_sessions(window.buffer)
        rows = rows_of_endpoints(self._sums.drain(window.buffer))
        counts = self._take_counts(window.buffer)
        self._sums.settle(window.buffer, len(rows.keys), int((counts["others"] + counts["map_full"]).sum()))
        stored, seen = int(rows.columns[0].values.sum()), int(counts["stored"].sum())
        self._limit = Limit(*[float(counts["observed"].sum() / seen) if stored and seen else 1.0] * 2)
        self._tell_of_the_unseen(counts)
        return (
            EventDrain(
                kind=KIND,
                start_ns=window.start_ns,
                end_ns=window.end_ns,
                keys=rows.keys,
                columns=rows.columns,
                account=account_of_events(stored, counts),
                objects=rows.objects,
                object_of_row=rows.object_of_row,
            ),
            self._drain_connects(window, int(counts["stacks_lost"].sum())),
        )

    def _drain_connects(self, window: ClosedWindow, lost: int) -> EventDrain:
        rows = rows_of_connects(self._connects.drain(window.buffer))
        self._connects.settle(window.buffer, len(rows.keys), 0)
        count = int(rows.columns[0].values.sum())
        return EventDrain(
            kind=STACKS_KIND,
            start_ns=window.start_ns,
            end_ns=window.end_ns,
            keys=rows.keys,
            columns=rows.columns,
            account=EventAccount(count + lost, 0, {LossReason.LOSS_REASON_AGENT_OVERRUN: lost} if lost else {}),
            stacks=window.stacks,
            objects=rows.objects,
            object_of_row=rows.object_of_row,
        )

    def tick(self) -> float | None:
        """Look at the rate."""
        return self._following.tick()

    def limit(self) -> Limit:
        """How many of the events of the last window were of connections that are followed."""
        return self._limit

    def map_bytes(self) -> int:
        """Kernel memory of sums and stacks, both buffers."""
        return self._sums.size_bytes() + self._connects.size_bytes()

    def _find_open_sockets(self) -> None:
        """Those that were there before us: listeners first, so that it is known of the others who called. Or they are not followed."""
        try:
            finder = Iterator(self._program.function("bpf_iter__task_file"))
        except KernelError as error:
            log.warning("open sockets not found reason=%s", error)
            return
        try:
            for finding in (_LISTENERS, _OTHERS):
                self._write_settings(0, finding)
                finder.run()
        finally:
            finder.close()

    def _settle_open_sessions(self, buffer: int) -> None:
        """Count what went through open sockets since the last window, into `buffer`."""
        left = [key for keys, _ in kernel.drain(self._program.map("closed_sessions"), "<u8", "<u8", CHUNK) for key in keys.tolist()]
        self._write_settings(buffer)
        self._open_sessions.run()
        for key in left:  # They closed just while we counted them, in an earlier window.
            kernel.delete(self._program.map("tcp_sessions"), key.to_bytes(8, "little"))

    def _write_settings(self, buffer: int, finding: int = 0) -> None:
        kernel.update(self._program.map("tcp_settings"), _KEY_ZERO, _SETTINGS.pack(0, buffer, finding, 0, self._one_in, self._most_stacks))

    def _follow(self, one_in: int) -> None:
        self._one_in = one_in
        self._write_settings(0)

    def _events_per_cpu(self) -> npt.NDArray[np.uint64]:
        total: npt.NDArray[np.uint64] = self._before + sum(self._counts(buffer)["events"] for buffer in range(kernel.BUFFERS))
        return total

    def _counts(self, buffer: int) -> npt.NDArray[np.void]:
        size = TCP_COUNTS.itemsize * kernel.possible_cpu_count()
        return np.frombuffer(kernel.lookup(self._program.map("tcp_counts"), buffer.to_bytes(4, "little"), size), TCP_COUNTS)

    def _take_counts(self, buffer: int) -> npt.NDArray[np.void]:
        """Counters of each CPU; they begin again from zero."""
        counts = self._counts(buffer)
        self._before = self._before + counts["events"]
        kernel.update(self._program.map("tcp_counts"), buffer.to_bytes(4, "little"), bytes(counts.nbytes))
        return counts

    def _tell_of_the_unseen(self, counts: npt.NDArray[np.void]) -> None:
        full, unowned = int(counts["sessions_full"].sum()), int(counts["unowned"].sum())
        if full or unowned:
            log.warning("connections out of sight no_room=%d without_owner=%d", full, unowned)


def account_of_events(stored: int, counts: npt.NDArray[np.void]) -> EventAccount:
    """Of the events in the rows of a window, and what was counted of them (TCP_COUNTS of each CPU)."""
    seen, filtered, full, busy = (int(counts[name].sum()) for name in ("stored", "filtered", "map_full", "map_busy"))
    lost = {
        LossReason.LOSS_REASON_MAP_FULL: full,
        LossReason.LOSS_REASON_MAP_BUSY: busy,
        LossReason.LOSS_REASON_UNEXPLAINED: max(0, seen - stored),
    }
    happened = {reason: count for reason, count in lost.items() if count}
    return EventAccount(stored + filtered + sum(happened.values()), filtered, happened)


GROUP = Group((KIND, STACKS_KIND), spec, TcpProfiler.start)
