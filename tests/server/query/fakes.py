# SPDX-License-Identifier: Apache-2.0
"""A store and a namer in memory, with behaviour: rows of text in, the answers of the protocol out.

A row is (service, host, thread, frames, samples); frames are root first as people read them and are stored leaf first. A frame is
"name" (native), "name_[k]" (kernel), "[truncated]" and the like (a mark), or "?NAME" (a place without a name).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import sqlalchemy as sa

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import marks_pb2
from server.profile.names import CodeKind, FrameColumns, FrameNames, FunctionTable
from server.query.frame_names import Binaries
from server.query.kinds import CPU
from server.store import tables
from server.store.documents import Documents
from server.store.protocol import (
    AccountSlot,
    AgentInfo,
    BinaryInfo,
    Compacted,
    DeployNote,
    KindInfo,
    Piece,
    Retired,
    RetireLimits,
    Selection,
    SeriesInfo,
    ServiceDictionary,
    ServiceInfo,
    Timeline,
    VersionInfo,
)
from server.store.push import Appended, DecodedPush
from server.store.unit import UnitOfWork
from server.symbols.marks import mark_words

SECOND_NS = 10**9
START_S = 1_700_000_000
START_NS = START_S * SECOND_NS
WINDOW_NS = 10 * SECOND_NS
PERIOD_NS = 10_000_019
"""A prime near 1 / 100 Hz."""
NOW_NS = START_NS + 60 * SECOND_NS

Row = tuple[str, str, str, Sequence[str], int]
_MARKS = {mark_words(number): number for number in marks_pb2.Mark.values() if number}
_BINARY = 1


class FakeNamer:
    """Names JIT frames by their string, kernel frames by the string their offset points at; the rest is unknown."""

    def __init__(self) -> None:
        self.generation = 1
        self.prefix = ""
        """Put before every native name: another one with a new generation is a renaming."""
        self.being_made: set[int] = set()
        """Row ids of binaries whose names are being made."""
        self.looked_at: dict[int, float] = {}
        """Weights by row id, of the last question that met a table in the making."""

    def pending(self) -> int:
        return len(self.being_made)

    def look_at(self, binaries: Sequence[tuple[BinaryInfo, float]]) -> list[int]:
        self.looked_at = {info.row_id: weight for info, weight in binaries}
        return sorted(self.being_made & self.looked_at.keys())

    def names(self, frames: FrameColumns, binaries: Binaries, strings: Sequence[bytes], service: str = "") -> FrameNames:
        names, codes, is_named = [], [], []
        for kind, ref, offset in zip(frames.kinds.tolist(), frames.refs.tolist(), frames.offsets.tolist(), strict=True):
            name, code = "[unknown]", CodeKind.UNKNOWN
            if kind == pb.PLACE_KIND_JIT:
                name, code = self.prefix + strings[ref].decode("utf-8", "backslashreplace"), CodeKind.NATIVE
            elif kind == pb.PLACE_KIND_KERNEL:
                name, code = strings[offset].decode(), CodeKind.KERNEL
            elif kind == pb.PLACE_KIND_MARK:
                name, code = mark_words(offset), CodeKind.MARK
            elif kind == pb.PLACE_KIND_FILE:
                (info,) = binaries([ref])
                name = f"[unknown] {info.path.decode().rpartition('/')[2]}+{offset:#x}"
            names.append(name)
            codes.append(int(code))
            is_named.append(code != CodeKind.UNKNOWN)
        count = len(names)
        table = FunctionTable(
            names=names,
            raw_names=names,
            binaries=["" if code == CodeKind.MARK else "app" for code in codes],
            codes=np.array(codes, np.uint8),
            is_named=np.array(is_named, np.bool_),
            files=[""] * count,
            lines=np.zeros(count, np.int32),
        )
        return FrameNames(np.arange(count, dtype=np.int32), table, self.generation)


@dataclass
class _Dictionary:
    """The growing tables of one service."""

    strings: dict[bytes, int] = field(default_factory=lambda: {b"": 0})
    frames: dict[tuple[int, int, int, int], int] = field(default_factory=lambda: {(0, 0, 0, 0): 0})
    nodes: dict[tuple[int, int], int] = field(default_factory=lambda: {(0, 0): 0})
    keys: dict[tuple[int, int], int] = field(default_factory=lambda: {(0, 0): 0})

    def string(self, text: str) -> int:
        return self.strings.setdefault(text.encode("utf-8", "surrogateescape"), len(self.strings))

    def key(self, thread: str, frames: Sequence[str]) -> int:
        node = 0
        for text in frames:
            node = self.nodes.setdefault((node, self._frame(text)), len(self.nodes))
        return self.keys.setdefault((node, self.string(thread)), len(self.keys))

    def _frame(self, text: str) -> int:
        row = (pb.PLACE_KIND_JIT, self.string(text), 0, 0)
        if text in _MARKS:
            row = (pb.PLACE_KIND_MARK, 0, _MARKS[text], 0)
        elif text.endswith("_[k]"):
            row = (pb.PLACE_KIND_KERNEL, 0, self.string(text.removesuffix("_[k]")), 0)
        elif text.startswith("?"):
            row = (pb.PLACE_KIND_FILE, _BINARY, self.string(text), 0)
        return self.frames.setdefault(row, len(self.frames))

    def freeze(self, service: str) -> ServiceDictionary:
        frames, nodes, keys = np.array(list(self.frames)), np.array(list(self.nodes)), np.array(list(self.keys))
        none = np.zeros(len(keys), np.uint32)
        return ServiceDictionary(
            service=service,
            frame_kinds=frames[:, 0].astype(np.uint8),
            frame_refs=frames[:, 1].astype(np.uint32),
            frame_offsets=frames[:, 2].astype(np.uint64),
            frame_is_return=frames[:, 3].astype(np.uint8),
            node_parents=nodes[:, 0].astype(np.uint32),
            node_frames=nodes[:, 1].astype(np.uint32),
            key_stacks=keys[:, 0].astype(np.uint32),
            key_seconds=none,
            key_objects=none,
            key_threads=keys[:, 1].astype(np.uint32),
            key_classes=none,
            strings=list(self.strings),
        )


@dataclass
class _Window:
    series_id: int
    service: str
    start_ns: int
    values: dict[int, int]


class FakeStore:
    """Keeps windows of kind cpu. Series have the labels service, host, version and "Zone" = z-HOST."""

    dictionary_id = bytes(16)

    def __init__(self) -> None:
        self._dictionaries: dict[str, _Dictionary] = {}
        self._series: dict[tuple[str, str, str], SeriesInfo] = {}
        self._windows: list[_Window] = []
        self.account_slots: list[AccountSlot] = []
        self.agent_infos: list[AgentInfo] = []
        self.notes: dict[tuple[str, str], DeployNote] = {}
        self._engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool, connect_args={"check_same_thread": False})

    def add(self, rows: Sequence[Row], start_ns: int = START_NS, version: str = "1.2.3") -> None:
        """Store the rows of one window of 10 s."""
        for service, host, thread, frames, samples in rows:
            key = self._dictionaries.setdefault(service, _Dictionary()).key(thread, frames)
            name = (service, host, version)
            labels = {"service": service, "host": host, "version": version, "zone": f"z-{host}"}
            known = self._series.get(name)
            number, first = (known.series_id, known.first_unix_ns) if known else (len(self._series) + 1, start_ns)
            self._series[name] = SeriesInfo(number, service, "cpu", labels, min(first, start_ns), start_ns)
            self._windows.append(_Window(number, service, start_ns, {key: samples}))

    def append(self, push: DecodedPush) -> Appended:
        raise NotImplementedError

    def select(self, selection: Selection) -> Iterator[Piece]:
        for window in self._chosen(selection):
            keys = np.array(list(window.values), np.int64)
            samples = np.array(list(window.values.values()), np.uint64)
            columns = {"samples": samples, "ns": samples * np.uint64(PERIOD_NS), "observed": samples}
            wanted = {name: columns[name] for name in selection.columns or columns}
            yield Piece(window.service, keys, window.series_id, wanted, window.start_ns, window.start_ns + WINDOW_NS)

    def kinds(self) -> list[KindInfo]:
        return [CPU] if self._windows else []

    def series(self, kind: str, from_unix_ns: int, until_unix_ns: int) -> list[SeriesInfo]:
        found = [s for s in self._series.values() if s.first_unix_ns < until_unix_ns and s.last_unix_ns >= from_unix_ns]
        return sorted((s for s in found if s.kind == kind), key=lambda s: s.series_id)

    def timeline(self, selection: Selection, step_ns: int) -> Timeline:
        slots = -(-(selection.until_unix_ns - selection.from_unix_ns) // step_ns)
        windows = self._chosen(selection)
        ids = sorted({window.series_id for window in windows})
        samples, has_data = np.zeros((len(ids), slots), np.uint64), np.zeros((len(ids), slots), np.bool_)
        for window in windows:
            row, slot = ids.index(window.series_id), (window.start_ns - selection.from_unix_ns) // step_ns
            samples[row, slot] += np.uint64(sum(window.values.values()))
            has_data[row, slot] = True
        columns = {"samples": samples, "ns": samples * np.uint64(PERIOD_NS), "observed": samples}
        return Timeline(selection.from_unix_ns, step_ns, np.array(ids, np.int64), columns, has_data)

    def accounts(self, kind: str, from_unix_ns: int, until_unix_ns: int, step_ns: int | None = None) -> list[AccountSlot]:
        return [slot for slot in self.account_slots if from_unix_ns <= slot.slot_unix_ns < until_unix_ns]

    def catalog(self, from_unix_ns: int, until_unix_ns: int) -> list[ServiceInfo]:
        found = {}
        for info in self.series("cpu", from_unix_ns, until_unix_ns):
            mine = [s for s in self._series.values() if s.service == info.service]
            versions = {s.labels["version"]: s.first_unix_ns for s in sorted(mine, key=lambda s: -s.first_unix_ns)}
            ordered = sorted((VersionInfo(name, first, first) for name, first in versions.items()), key=lambda v: v.first_unix_ns)
            found[info.service] = ServiceInfo(info.service, mine[0].first_unix_ns, mine[0].last_unix_ns, 1, tuple(ordered))
        return [found[name] for name in sorted(found)]

    def dictionary(self, service: str) -> ServiceDictionary:
        return self._dictionaries.get(service, _Dictionary()).freeze(service)

    def binaries(self, row_ids: Sequence[int]) -> list[BinaryInfo]:
        name = {0: b"", 1: b"/opt/app"}
        return [BinaryInfo(i, pb.BINARY_KIND_ELF, pb.BUILD_ID_KIND_GNU, b"\x01\x02\x03\x04", b"", name[i], (), 0) for i in row_ids]

    def agents(self) -> list[AgentInfo]:
        return self.agent_infos

    def deploy_notes(self) -> list[DeployNote]:
        return list(self.notes.values())

    def note_deploy(self, note: DeployNote, now_unix_ns: int) -> None:
        self.notes[note.service, note.version] = note

    @cached_property
    def documents(self) -> Documents:
        tables.documents.create(self._engine)
        return Documents(self._engine, UnitOfWork(self._engine))

    def compact(self, now_unix_ns: int) -> Compacted:
        return Compacted()

    def retire(self, limits: RetireLimits, now_unix_ns: int) -> Retired:
        return Retired()

    def close(self) -> None:
        pass

    def _chosen(self, selection: Selection) -> list[_Window]:
        return [
            window
            for window in self._windows
            if selection.kind == "cpu"
            and selection.from_unix_ns <= window.start_ns < selection.until_unix_ns
            and (selection.series_ids is None or window.series_id in selection.series_ids)
        ]


def agent(host: str, last_window_end_ns: int = NOW_NS) -> AgentInfo:
    """An agent of a host that was last heard of at `last_window_end_ns`."""
    return AgentInfo(
        agent_id=host.encode().ljust(16, b"."),
        host=host,
        epoch_unix_ns=START_NS,
        first_seen_unix_ns=START_NS,
        last_seen_unix_ns=last_window_end_ns,
        last_window_end_unix_ns=last_window_end_ns,
        kernel_release="6.18.0",
        agent_version="0.1.0",
        online_cpus=2,
        rate_hz=99,
        window_s=10,
        flags=(),
    )
