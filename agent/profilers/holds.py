# SPDX-License-Identifier: Apache-2.0
"""Kind lock_hold, on demand: how long locks of user space that others wait for are held, by lock and by where they are let go.

A hold is timed when its thread had to wait for the lock (bpf/hold.bpf.c says why, and why of mutexes only is every such end seen); holds
that began without a wait are not seen. Holds of kernel locks are not to be had: no tracepoint tells of their end.
"""

import struct
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.kernel import program as kernel
from agent.kernel.program import BufferedMap, MapShape, ProgramSpec, ProgramType
from agent.profilers.breaker import Breaker
from agent.profilers.event_host import ClosedWindow, EventHost, Group, Scratch, StackedProfiler
from agent.profilers.hold_starts import HoldStarts
from agent.profilers.lock_links import LockLinks
from agent.profilers.lock_rows import LOCK_KEY, LOCK_VALUE, Rows, Texts, most_waited, named_objects
from agent.profilers.locks import LONGEST_UNSEEN_NS, MOST_USER_LOCKS, account_of_waits, columns_of_waits
from agent.profilers.waits import sees_all_threads
from agent.records.drain import CPU_KEY
from agent.records.event_drain import EventDrain
from agent.records.limit import Limit

KIND = "lock_hold"
HOLD_KEY = np.dtype([("own", CPU_KEY), ("lock", "<u8"), ("type", "<u4"), ("padding", "<u4")])
"""struct hold_key in bpf/hold.bpf.c."""
HOLD_SETTINGS = struct.Struct("<QQ")
FIRST_ROWS, MOST_ROWS, CHUNK = 2048, 1 << 16, 1024
_KEY_ZERO = (0).to_bytes(4, "little")
SPEC = ProgramSpec(
    source="hold.bpf.c",
    functions=dict.fromkeys(("on_acquire", "on_release", "on_hold_walked"), ProgramType.RAW_TRACEPOINT),
    maps=("hold_settings", "hold_counts", "hold_rows", "holds"),
)


class _Links(LockLinks):
    def __init__(self, host: EventHost) -> None:
        super().__init__(host, "hold_counts")
        self.on_since_ns = 0
        """When they were attached last."""

    def attach(self) -> None:
        program, settings = self.host.program, self.host.settings
        self.on_since_ns = self.host.now_ns()
        packed = HOLD_SETTINGS.pack(self.on_since_ns, min(settings.threshold_ns, LONGEST_UNSEEN_NS))
        kernel.update(program.map("hold_settings"), _KEY_ZERO, packed)
        self.attached.append(program.open_raw_tracepoint("sys_enter", "on_release"))
        self.attached.append(program.open_raw_tracepoint("sys_exit", "on_acquire"))


class HoldProfiler(StackedProfiler):
    """From start() to close(). Not thread safe."""

    def __init__(self, host: EventHost, closing: ExitStack) -> None:
        super().__init__(host, closing)
        self._rows = BufferedMap(host.program.map("hold_rows"), MapShape("hold_rows", HOLD_KEY, LOCK_VALUE, MOST_ROWS, CHUNK), FIRST_ROWS)
        closing.callback(self._rows.close)
        host.install_finisher(Scratch.HOLD, "on_hold_walked")
        self._starts = HoldStarts(host.program.map("holds"), Path("/proc") if sees_all_threads() else None)
        self._links = _Links(host)
        closing.callback(self._links.detach)  # when only one of the two could be attached
        self._breaker = Breaker(self._links, host.settings.most_per_s, host.settings.window_s, host.now_ns)
        closing.callback(self._breaker.close)

    def drain(self, window: ClosedWindow) -> Sequence[EventDrain]:
        share = self._breaker.close_window(window.end_ns)
        keys, values = self._rows.drain_all(window.buffer)
        counts = self._links.take_counts(window.buffer)
        counts["unpaired"] += self._starts.forget_unended(self._links.on_since_ns, window.end_ns)
        self._rows.settle(window.buffer, len(keys), counts["rows_full"])
        objects, object_of_row = _objects(keys, values)
        return (
            EventDrain(
                kind=KIND,
                start_ns=window.start_ns,
                end_ns=window.end_ns,
                keys=keys["own"].copy(),
                columns=columns_of_waits(values, share),
                account=account_of_waits(values["count"], counts, share),
                stacks=window.stacks,
                objects=objects,
                object_of_row=object_of_row,
            ),
        )

    def tick(self) -> float | None:
        return self._breaker.tick()

    def limit(self) -> Limit:
        return Limit(self._breaker.duty, self._breaker.duty)

    def map_bytes(self) -> int:
        return self._rows.size_bytes()


def _objects(keys: Rows, values: Rows) -> tuple[list[bytes], npt.NDArray[np.int64]]:
    """The same names as in kind lock."""
    alike = np.zeros(len(keys), LOCK_KEY)
    for name in ("own", "lock", "type"):
        alike[name] = keys[name]
    nameless = Texts([b""], np.zeros(len(keys), np.int64))
    return named_objects(keys["type"], most_waited(alike, values["ns"], MOST_USER_LOCKS), nameless, nameless)


GROUP = Group((KIND,), lambda: SPEC, HoldProfiler.start)
