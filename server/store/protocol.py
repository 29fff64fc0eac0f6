# SPDX-License-Identifier: Apache-2.0
"""What a store of profiles promises, and the nouns that pass over its border (hop 8 of the path in README).

Times are UTC in nanoseconds; ranges are half open, and a window belongs to the moment of its start. Stacks are leaf first: a stack
is a node, and walking up its parents to node 0 gives its frames from the leaf on. Every table has an empty entry 0.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from server.store.documents import Documents
from server.store.push import Appended, DecodedPush, ValueMerge

U8 = npt.NDArray[np.uint8]
U32 = npt.NDArray[np.uint32]
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.unsignedinteger]

OVERFLOW_SERVICE = "__overflow__"
"""Service of all series beyond the limit of active ones; has no other label."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Rows of one kind whose window starts in [from_unix_ns, until_unix_ns).

    `series_ids` None takes all series of the kind; `columns` None takes all columns.
    """

    kind: str
    from_unix_ns: int
    until_unix_ns: int
    series_ids: frozenset[int] | None = None
    columns: tuple[str, ...] | None = None
    longest_ns: int = 0
    """No piece may span more than this, but for a minute; 0 for any."""
    is_compact: bool = False
    """Columns that are a piece's first one so many times may stand in its `multiples` alone."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of one service. Arrays have one element a row; a key may come more than once, in one piece and in several."""

    service: str
    keys: I64
    """Numbers of row keys in dictionary(service), of numpy's own index type; ascending, or in each run when there are runs."""
    series: I64 | int
    """Series of each row, or the one series of all."""
    columns: Mapping[str, Unsigned]
    """Values, as narrow as they are stored. A column that a window did not have is absent and counts as 0."""
    start_unix_ns: int
    end_unix_ns: int
    """Start of the first and end of the last window in it."""
    run_sizes: I64 | None = None
    """Rows of each series when they stand series by series, none of them 0."""
    multiples: Mapping[str, int] = field(default_factory=dict)
    """Columns that are left out because they are the first of `columns` so many times. Only of a compact selection."""


@dataclass(frozen=True, slots=True)
class SeriesInfo:
    """One series. Labels hold "service", "host" and what the agent sent; bytes that are not UTF-8 stand as \\xNN."""

    series_id: int
    service: str
    kind: str
    labels: Mapping[str, str]
    first_unix_ns: int
    """Start of the oldest window it ever had."""
    last_unix_ns: int
    """Start of the newest, exact to a minute."""


@dataclass(frozen=True, slots=True)
class ColumnInfo:
    """One value column of a kind."""

    name: str
    unit: str
    merge: ValueMerge


@dataclass(frozen=True, slots=True)
class KindInfo:
    """A kind that has been stored; the first column is the one accounts count in."""

    name: str
    columns: tuple[ColumnInfo, ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """Values of series over slots, made without opening rows. Slot i is [from_unix_ns + i * step_ns, + step_ns), the last may be cut."""

    from_unix_ns: int
    step_ns: int
    series_ids: I64
    """Ascending; only series with a window in the range."""
    columns: Mapping[str, U64]
    """Shape (series, slots): sums, or the largest for columns that merge by max."""
    has_data: npt.NDArray[np.bool_]
    """Shape (series, slots): a window started there."""


@dataclass(frozen=True, slots=True)
class AccountSlot:
    """The account of one host over one slot: expected = stored + idle + filtered + sum of lost below 100.

    What the sum leaves over is in `lost` as UNEXPLAINED; gaps between windows of one agent are AGENT_DOWN (in `expected` too).
    """

    agent_id: bytes
    host: str
    slot_unix_ns: int
    """Start of the slot."""
    expected: int
    stored: int
    idle: int
    filtered: int
    lost: Mapping[int, int]
    """LossReason to value; only reasons that happened; those from 100 on are stored ones without their stack."""


@dataclass(frozen=True, slots=True)
class VersionInfo:
    """One version of a service; "" when the agent knew none."""

    version: str
    first_unix_ns: int
    last_unix_ns: int


@dataclass(frozen=True, slots=True)
class ServiceInfo:
    """One service. Versions are ordered by first_unix_ns."""

    service: str
    first_unix_ns: int
    last_unix_ns: int
    hosts: int
    versions: tuple[VersionInfo, ...]


@dataclass(frozen=True, slots=True)
class ServiceDictionary:
    """What the numbers of one service mean, frozen at one moment. Numbers are only ever appended, so a longer one agrees with a shorter.

    key_stacks and key_seconds index nodes; key_objects, key_threads and key_classes index strings; node_frames index frames; frame_refs
    are row ids of binaries of the store (FILE, KERNEL, MODULE) or index strings (JIT, BPF). The parent of a node has a lower number.
    """

    service: str
    frame_kinds: U8
    frame_refs: U32
    frame_offsets: U64
    frame_is_return: U8
    node_parents: U32
    node_frames: U32
    key_stacks: U32
    key_seconds: U32
    key_objects: U32
    key_threads: U32
    key_classes: U32
    strings: Sequence[bytes]

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        """Numbers of frames, nodes, keys and strings: equal sizes of one service mean equal dictionaries."""
        return self.frame_kinds.size, self.node_parents.size, self.key_stacks.size, len(self.strings)


@dataclass(frozen=True, slots=True)
class BinaryInfo:
    """A binary that frames refer to. Fields are those of emberwatch.v1.Binary; kinds are BinaryKind and BuildIdKind."""

    row_id: int
    kind: int
    build_id_kind: int
    build_id: bytes
    content_hash: bytes
    path: bytes
    segments: tuple[tuple[int, int, int, int, int], ...]
    """(offset, vaddr, file size, memory size, flags) of each PT_LOAD header, in file order."""
    size_bytes: int


@dataclass(frozen=True, slots=True)
class AgentInfo:
    """What is known of one agent. Of facts, the newest window's count."""

    agent_id: bytes
    host: str
    epoch_unix_ns: int
    first_seen_unix_ns: int
    """Server's clock, at its first push."""
    last_seen_unix_ns: int
    """Server's clock, at its last push."""
    last_window_end_unix_ns: int
    kernel_release: str
    agent_version: str
    online_cpus: int
    rate_hz: int
    window_s: int
    flags: tuple[str, ...]
    """The agent's own, and "time_suspect" and "host_name_shared" of the server."""


@dataclass(frozen=True, slots=True)
class DeployNote:
    """What a person or a pipeline says of one version of a service."""

    service: str
    version: str
    text: str


@dataclass(frozen=True, slots=True)
class RetireLimits:
    """What may stay. 0 means no limit."""

    keep_s: int = 14 * 86_400
    keep_bytes: int = 0
    """Of blocks and batches together."""
    keep_level0_s: int = 6 * 3600
    """Batches that are in blocks already."""
    keep_push_keys_s: int = 72 * 3600


@dataclass(frozen=True, slots=True)
class Retired:
    """What one step of retiring removed."""

    batches: int = 0
    blocks: int = 0
    """Of a minute; longer ones, which are made of these, leave with them."""
    size_bytes: int = 0
    is_done: bool = True
    """False when the step ended at its bound and there is more to remove."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What one step of compaction did."""

    batches: int = 0
    blocks: int = 0
    is_done: bool = True
    """False when there is more to do now."""


class Store(Protocol):
    """Keeps windows, gives them back. Safe to call from many threads; calls raise ServerError children only."""

    @property
    def dictionary_id(self) -> bytes:
        """16 bytes that tell the numbers this store gave since its start from any others."""
        ...

    def append(self, push: DecodedPush) -> Appended:
        """Store one push, once; durable when it returns. Raises BadRequest, LimitExceeded or Overloaded and has then stored nothing."""
        ...

    def select(self, selection: Selection) -> Iterator[Piece]:
        """The rows of the selection, each once, all from one moment. Empty when there are none. Close the iterator to give up early."""
        ...

    def kinds(self) -> list[KindInfo]:
        """All kinds ever stored, by name."""
        ...

    def series(self, kind: str, from_unix_ns: int, until_unix_ns: int) -> list[SeriesInfo]:
        """Series of the kind that may have windows in the range, by id."""
        ...

    def timeline(self, selection: Selection, step_ns: int) -> Timeline:
        """Values by series and slot. Raises LimitExceeded beyond 10 million cells. Windows count where they start, at any age exactly."""
        ...

    def accounts(self, kind: str, from_unix_ns: int, until_unix_ns: int, step_ns: int | None = None) -> list[AccountSlot]:
        """Accounts by agent and slot, ordered by both; one slot for the whole range when `step_ns` is None."""
        ...

    def catalog(self, from_unix_ns: int, until_unix_ns: int) -> list[ServiceInfo]:
        """Services that may have windows in the range, by name, with all their versions."""
        ...

    def dictionary(self, service: str) -> ServiceDictionary:
        """What numbers of the service mean now; with entries 0 only when it has none."""
        ...

    def binaries(self, row_ids: Sequence[int]) -> list[BinaryInfo]:
        """Binaries by row id, in the order asked. Raises BadRequest for an unknown id."""
        ...

    def agents(self) -> list[AgentInfo]:
        """All agents, by host."""
        ...

    def deploy_notes(self) -> list[DeployNote]:
        """All that is said of deploys, the longest known first."""
        ...

    def note_deploy(self, note: DeployNote, now_unix_ns: int) -> None:
        """Say it in place of what was said of that version; an empty text takes it back. Raises LimitExceeded when there are too many."""
        ...

    @property
    def documents(self) -> Documents:
        """What is kept of deploys, events, views and shares."""
        ...

    def compact(self, now_unix_ns: int) -> Compacted:
        """One bounded step of turning batches into blocks, and blocks into longer ones."""
        ...

    def retire(self, limits: RetireLimits, now_unix_ns: int) -> Retired:
        """One bounded step of removing what is over the limits, oldest first."""
        ...

    def close(self) -> None:
        """Let go of the database; nothing may be called afterwards."""
        ...
