# SPDX-License-Identifier: Apache-2.0
"""All processes the agent knows, by identity: read at first sight, kept fresh while they have samples, forgotten after their death.

/proc does not show exec_id, so which program a key means is decided so: the highest exec_id seen of one (pid, start) is the program that
runs now. Keys below it keep what was read while they ran, or are EXEC_RACE. When a new exec_id shows the very image that was read for
the one before, that one had been read too late and becomes EXEC_RACE: it never shows the names of its successor. So does one of which the
kernel has told a later program when it is to be read.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from agent.process.binaries import BinaryCache
from agent.process.cgroup_path import CgroupPaths
from agent.process.origins import Origins
from agent.process.perf_map_file import PerfMapFiles, PerfMapState, with_jit
from agent.process.rate import RateLimit
from agent.process.reader import Image, Mapped, ProcessReader, Sight
from agent.process.revisits import LIVED_ON, Revisits
from agent.process.settings import ProcessSettings
from agent.records.binary import BinaryId, FileStamp
from agent.records.process import Fate, Origin, Process, ProcessKey

_LIVENESS_CHECKS = 256
"""Processes without samples that are looked at in one window."""
_RESERVE = 4
"""One part in so many of the budget of first sights is for processes that were put off and live on."""
_UNREAD = b"[unread]"
_NAMES = {Fate.EXITED: b"[exited]", Fate.EXEC_RACE: b"[exec race]", Fate.KERNEL: b"kernel", Fate.ALIVE: b""}


@dataclass(slots=True)
class TableCounts:
    """What happened since the start; all only grow, except `processes`."""

    processes: int = 0
    seen: int = 0
    exited: int = 0
    """Gone at first sight."""
    exec_race: int = 0
    rate_limited: int = 0
    """First sights that were put off; they count again in `exited` if they never came."""
    evicted: int = 0
    """Processes dropped for room."""
    maps_reread: int = 0
    malformed_lines: int = 0
    binaries_evicted: int = 0
    files_unreadable: int = 0
    files_changed: int = 0
    perf_maps_refused: int = 0
    perf_maps_truncated: int = 0
    perf_maps_put_off: int = 0
    perf_map_lines_malformed: int = 0


@dataclass(slots=True)
class _Entry:
    process: Process
    image: Image | None
    mapped: Mapped | None
    namespace_pid: int
    read_s: float
    window: int
    """The last one it had samples in, or was first seen in."""
    perf: PerfMapState | None = None


class ProcessTable:
    """For one thread, except for `open_binary` and `release_binary`."""

    def __init__(self, settings: ProcessSettings, proc_root: Path = Path("/proc"), now_s: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._now_s = now_s
        self._binaries = BinaryCache(settings.binaries_max, settings.open_max, proc_root)
        self._reader = ProcessReader(proc_root, self._binaries)
        self._perf_maps = PerfMapFiles(settings, proc_root, now_s)
        self._origins = Origins(CgroupPaths().path)
        self._revisits = Revisits(settings.processes_max, now_s)
        self._rate = RateLimit(settings.new_per_s, settings.new_burst, now_s)
        self._entries: OrderedDict[ProcessKey, _Entry] = OrderedDict()
        self._newest: dict[tuple[int, int], ProcessKey] = {}
        self._in_exec: set[ProcessKey] = set()
        """Met in the middle of an exec: looked at again soon."""
        self._put_off: set[ProcessKey] = set()
        """There was no budget to read them: those that live on are looked at again soon, before others."""
        self._expected: set[ProcessKey] = set()
        """Told of at an exec, without samples yet: looked at soon."""
        self._changed: set[ProcessKey] | None = None
        self._window = 0
        self._counts = TableCounts()

    def note(self, origins: Iterable[Origin]) -> None:
        """Keep what processes are called, for those that will be gone when they are read; call it before `see`."""
        self._origins.note(origins, self._service_of)

    def see(self, keys: Iterable[ProcessKey]) -> None:
        """First sight of new processes; known ones cost nothing. The newest program of a process is read first.

        Young processes whose time has come are looked at again, so call it (with nothing, too) after `wait_s` at the latest.
        """
        new = {key for key in keys if key not in self._entries}
        for key in sorted(new, key=lambda key: -key.exec_id):
            if self._may_read(key, 0 if key in self._put_off else self._settings.new_burst // _RESERVE):
                self._enter(key, 0)
            elif key not in self._put_off:
                self._counts.rate_limited += 1
                self._put_off_to(key, LIVED_ON)
        for key, step in self._revisits.take_due():
            self._revisit(key, step)

    def expect(self, keys: Iterable[ProcessKey]) -> None:
        """Programs that began a moment ago: read by `see` when they have had the time to load their libraries, if they still live then."""
        for key in keys:
            if key not in self._entries and key not in self._expected and self._revisits.plan(key):
                self._expected.add(key)

    def watch(self) -> Callable[[], set[ProcessKey]]:
        """Gives a function that tells, once each, which processes were found, mapped something else, or were forgotten since now."""
        self._changed = set()
        return self._take_changed

    def wait_s(self) -> float | None:
        """Seconds until a young process should be looked at again by `see`; None when there is none."""
        return self._revisits.wait_s()

    def update(self, keys: Iterable[ProcessKey]) -> None:
        """At the end of a window: bring up to date the processes that had samples in it, `keys`."""
        with_samples = set(keys)
        self.see(with_samples)
        now_s = self._now_s()
        for key in with_samples:
            entry = self._entries.get(key)
            if entry is None:
                continue
            entry.window = self._window
            self._entries.move_to_end(key)
            if entry.image is not None:
                self._refresh(key, entry, now_s)

    def get(self, key: ProcessKey) -> Process:
        """What is known of a process; Fate.EXITED when nothing is, also of one that lives and is not read for want of budget or room."""
        entry = self._entries.get(key)
        if entry is not None:
            return entry.process
        unknown = self._without_image(key, Fate.EXITED, 0)
        is_unread = unknown.service == _NAMES[Fate.EXITED] and self._reader.is_alive(key)
        return replace(unknown, service=_UNREAD) if is_unread else unknown

    def forget_dead(self) -> None:
        """After a window: drop the dead that had no samples in it. Those that had may have more in the next, up to their death."""
        idle = [key for key, entry in self._entries.items() if entry.window < self._window][:_LIVENESS_CHECKS]
        for key in idle:
            if self._reader.is_listed(key.pid):
                self._entries.move_to_end(key)
            else:
                self._drop(key)
        self._window += 1

    def open_binary(self, binary_id: BinaryId) -> int | None:
        """A descriptor for upload, which the caller closes; None when the file is not kept open any more."""
        vdso = self._reader.open_vdso(binary_id)
        return vdso if vdso is not None else self._binaries.open_binary(binary_id)

    def files_of(self, binary_id: BinaryId) -> tuple[FileStamp, ...]:
        """The files that were found to be this binary; not those of the vDSO, which has none."""
        return self._binaries.files_of(binary_id)

    def release_binary(self, binary_id: BinaryId) -> None:
        """The server has answered for this binary; its file may be closed."""
        self._binaries.release(binary_id)

    def counts(self) -> TableCounts:
        """A copy of the counts."""
        return replace(
            self._counts,
            processes=len(self._entries),
            malformed_lines=self._reader.malformed_lines,
            binaries_evicted=self._binaries.evicted,
            files_unreadable=self._binaries.unreadable,
            files_changed=self._binaries.changed,
            perf_maps_refused=self._perf_maps.refused,
            perf_maps_truncated=self._perf_maps.truncated,
            perf_maps_put_off=self._perf_maps.put_off,
            perf_map_lines_malformed=self._perf_maps.malformed,
        )

    def close(self) -> None:
        """Close all descriptors."""
        self._binaries.close()

    def _may_read(self, key: ProcessKey, reserve: float) -> bool:
        """Whether the budget of first sights has room for it; one that is gone takes nothing of it."""
        return not self._reader.is_listed(key.pid) or self._rate.take(reserve=reserve)

    def _put_off_to(self, key: ProcessKey, step: int) -> None:
        if self._revisits.plan(key, step):
            self._put_off.add(key)

    def _enter(self, key: ProcessKey, step: int) -> None:
        newest = self._newest.get((key.pid, key.start_boot_ns))
        if (newest is not None and newest.exec_id > key.exec_id) or self._origins.is_another_by_now(key):
            sight: Sight | None = Sight(Fate.EXEC_RACE)
        else:
            sight = self._reader.first_sight(key)
        is_planned = (sight is None or sight.fate is Fate.ALIVE) and self._revisits.plan(key, step)
        if sight is None:
            if is_planned:
                self._in_exec.add(key)
            return
        self._note(key)
        if sight.fate is not Fate.EXEC_RACE:
            if newest is not None:
                self._expose_late_read(newest, sight)
            self._newest[key.pid, key.start_boot_ns] = key
        self._counts.seen += 1
        self._counts.exited += sight.fate is Fate.EXITED
        self._counts.exec_race += sight.fate is Fate.EXEC_RACE
        mappings = sight.mapped.mappings if sight.mapped is not None else ()
        service = sight.service or self._origins.service(key) or _NAMES[sight.fate]
        process = Process(key, sight.fate, service, sight.version, mappings, None, 0)
        entry = _Entry(process, sight.image, sight.mapped, sight.namespace_pid, self._now_s(), self._window)
        self._entries[key] = entry
        if entry.image is not None:
            entry.perf = self._perf_maps.state_at_first_sight(
                key.pid, entry.namespace_pid, key.start_boot_ns, is_after_exec=newest is not None
            )
            self._refresh(key, entry, self._now_s())
        if len(self._entries) > self._settings.processes_max:
            self._counts.evicted += 1
            self._drop(next(iter(self._entries)))

    def _revisit(self, key: ProcessKey, step: int) -> None:
        entry = self._entries.get(key)
        is_expected, is_put_off = key in self._expected, key in self._put_off
        self._expected.discard(key)
        self._put_off.discard(key)
        if entry is not None:
            if entry.image is not None:
                self._refresh(key, entry, self._now_s())
                self._revisits.plan(key, step)
        elif key in self._in_exec:
            self._in_exec.discard(key)
            self._enter(key, step)
        elif is_put_off:
            if self._may_read(key, 0):
                self._enter(key, step)
            else:
                self._put_off_to(key, step)
        elif is_expected and self._reader.is_listed(key.pid) and self._rate.take(reserve=self._settings.new_burst / 2):
            self._enter(key, step)

    def _expose_late_read(self, before: ProcessKey, sight: Sight) -> None:
        entry = self._entries.get(before)
        if entry is not None and entry.image is not None and entry.image == sight.image:
            self._counts.exec_race += 1
            self._note(before)
            entry.process = self._without_image(before, Fate.EXEC_RACE, entry.process.generation + 1)
            entry.image = entry.mapped = None
            self._perf_maps.forget(entry.perf)
            entry.perf = None

    def _refresh(self, key: ProcessKey, entry: _Entry, now_s: float) -> None:
        """Read again what changed, if the process still runs the image it was read with. An exec during it shows by its new exec_id."""
        assert entry.image is not None and entry.mapped is not None
        is_old = now_s - entry.read_s >= self._settings.reread_s
        has_new_maps = is_old or self._reader.fixed_pages(key.pid) != entry.mapped.fixed_pages
        has_new_perf_map = self._perf_maps.is_changed(key.pid, entry.namespace_pid, entry.perf)
        directory = self._reader.open_same(key, entry.image) if has_new_maps or has_new_perf_map else None
        if directory is None:
            return
        before = (entry.mapped.digest, entry.perf)
        with directory:
            if has_new_maps:
                entry.read_s = now_s
                entry.mapped = self._reader.mapped(directory) or entry.mapped
                self._counts.maps_reread += 1
            if has_new_perf_map:
                entry.perf = self._perf_maps.read(directory, entry.namespace_pid, entry.perf)
                self._give_up_perf_maps()
        if (entry.mapped.digest, entry.perf) != before:
            perf_map = entry.perf.perf_map if entry.perf is not None else None
            mappings = with_jit(entry.mapped.mappings, perf_map)
            entry.process = replace(entry.process, mappings=mappings, perf_map=perf_map, generation=entry.process.generation + 1)
            self._note(key)

    def _give_up_perf_maps(self) -> None:
        """Let go of the maps that had to make room for another."""
        given_up = self._perf_maps.take_given_up()
        if not given_up:
            return
        for key, entry in self._entries.items():
            if entry.perf is not None and entry.perf.number in given_up and entry.mapped is not None:
                entry.perf = self._perf_maps.without_map(entry.perf)
                process = entry.process
                entry.process = replace(process, mappings=entry.mapped.mappings, perf_map=None, generation=process.generation + 1)
                self._note(key)

    def _note(self, key: ProcessKey) -> None:
        if self._changed is not None:
            self._changed.add(key)

    def _take_changed(self) -> set[ProcessKey]:
        changed, self._changed = self._changed or set(), set()
        return changed

    def _drop(self, key: ProcessKey) -> None:
        self._note(key)
        self._perf_maps.forget(self._entries.pop(key).perf)
        if self._newest.get((key.pid, key.start_boot_ns)) == key:
            del self._newest[key.pid, key.start_boot_ns]

    def _without_image(self, key: ProcessKey, fate: Fate, generation: int) -> Process:
        return Process(key, fate, self._origins.service(key) or _NAMES[fate], b"", (), None, generation)

    def _service_of(self, key: ProcessKey) -> bytes:
        """Of one whose image was read."""
        entry = self._entries.get(key)
        return entry.process.service if entry is not None and entry.image is not None else b""
