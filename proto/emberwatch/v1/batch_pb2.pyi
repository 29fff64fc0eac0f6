from emberwatch.v1 import marks_pb2 as _marks_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ColumnCoding(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    COLUMN_CODING_UNSPECIFIED: _ClassVar[ColumnCoding]
    COLUMN_CODING_PLAIN: _ClassVar[ColumnCoding]
    COLUMN_CODING_DELTA: _ClassVar[ColumnCoding]

class BuildIdKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BUILD_ID_KIND_UNSPECIFIED: _ClassVar[BuildIdKind]
    BUILD_ID_KIND_GNU: _ClassVar[BuildIdKind]
    BUILD_ID_KIND_GO: _ClassVar[BuildIdKind]
    BUILD_ID_KIND_NONE: _ClassVar[BuildIdKind]

class BinaryKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BINARY_KIND_UNSPECIFIED: _ClassVar[BinaryKind]
    BINARY_KIND_ELF: _ClassVar[BinaryKind]
    BINARY_KIND_KERNEL: _ClassVar[BinaryKind]
    BINARY_KIND_MODULE: _ClassVar[BinaryKind]
    BINARY_KIND_VDSO: _ClassVar[BinaryKind]

class PlaceKind(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLACE_KIND_UNSPECIFIED: _ClassVar[PlaceKind]
    PLACE_KIND_FILE: _ClassVar[PlaceKind]
    PLACE_KIND_KERNEL: _ClassVar[PlaceKind]
    PLACE_KIND_MODULE: _ClassVar[PlaceKind]
    PLACE_KIND_JIT: _ClassVar[PlaceKind]
    PLACE_KIND_BPF: _ClassVar[PlaceKind]
    PLACE_KIND_MARK: _ClassVar[PlaceKind]

class Merge(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MERGE_UNSPECIFIED: _ClassVar[Merge]
    MERGE_SUM: _ClassVar[Merge]
    MERGE_MAX: _ClassVar[Merge]
    MERGE_HISTOGRAM: _ClassVar[Merge]
COLUMN_CODING_UNSPECIFIED: ColumnCoding
COLUMN_CODING_PLAIN: ColumnCoding
COLUMN_CODING_DELTA: ColumnCoding
BUILD_ID_KIND_UNSPECIFIED: BuildIdKind
BUILD_ID_KIND_GNU: BuildIdKind
BUILD_ID_KIND_GO: BuildIdKind
BUILD_ID_KIND_NONE: BuildIdKind
BINARY_KIND_UNSPECIFIED: BinaryKind
BINARY_KIND_ELF: BinaryKind
BINARY_KIND_KERNEL: BinaryKind
BINARY_KIND_MODULE: BinaryKind
BINARY_KIND_VDSO: BinaryKind
PLACE_KIND_UNSPECIFIED: PlaceKind
PLACE_KIND_FILE: PlaceKind
PLACE_KIND_KERNEL: PlaceKind
PLACE_KIND_MODULE: PlaceKind
PLACE_KIND_JIT: PlaceKind
PLACE_KIND_BPF: PlaceKind
PLACE_KIND_MARK: PlaceKind
MERGE_UNSPECIFIED: Merge
MERGE_SUM: Merge
MERGE_MAX: Merge
MERGE_HISTOGRAM: Merge

class Column(_message.Message):
    __slots__ = ("data", "width", "coding")
    DATA_FIELD_NUMBER: _ClassVar[int]
    WIDTH_FIELD_NUMBER: _ClassVar[int]
    CODING_FIELD_NUMBER: _ClassVar[int]
    data: bytes
    width: int
    coding: ColumnCoding
    def __init__(self, data: _Optional[bytes] = ..., width: _Optional[int] = ..., coding: _Optional[_Union[ColumnCoding, str]] = ...) -> None: ...

class StringTable(_message.Message):
    __slots__ = ("blob", "sizes")
    BLOB_FIELD_NUMBER: _ClassVar[int]
    SIZES_FIELD_NUMBER: _ClassVar[int]
    blob: bytes
    sizes: Column
    def __init__(self, blob: _Optional[bytes] = ..., sizes: _Optional[_Union[Column, _Mapping]] = ...) -> None: ...

class BinaryId(_message.Message):
    __slots__ = ("build_id_kind", "build_id", "content_hash")
    BUILD_ID_KIND_FIELD_NUMBER: _ClassVar[int]
    BUILD_ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_HASH_FIELD_NUMBER: _ClassVar[int]
    build_id_kind: BuildIdKind
    build_id: bytes
    content_hash: bytes
    def __init__(self, build_id_kind: _Optional[_Union[BuildIdKind, str]] = ..., build_id: _Optional[bytes] = ..., content_hash: _Optional[bytes] = ...) -> None: ...

class Segment(_message.Message):
    __slots__ = ("offset", "vaddr", "file_size_bytes", "memory_size_bytes", "flags")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    VADDR_FIELD_NUMBER: _ClassVar[int]
    FILE_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    MEMORY_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    offset: int
    vaddr: int
    file_size_bytes: int
    memory_size_bytes: int
    flags: int
    def __init__(self, offset: _Optional[int] = ..., vaddr: _Optional[int] = ..., file_size_bytes: _Optional[int] = ..., memory_size_bytes: _Optional[int] = ..., flags: _Optional[int] = ...) -> None: ...

class Binary(_message.Message):
    __slots__ = ("kind", "id", "path", "segments", "size_bytes")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    SEGMENTS_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    kind: BinaryKind
    id: BinaryId
    path: bytes
    segments: _containers.RepeatedCompositeFieldContainer[Segment]
    size_bytes: int
    def __init__(self, kind: _Optional[_Union[BinaryKind, str]] = ..., id: _Optional[_Union[BinaryId, _Mapping]] = ..., path: _Optional[bytes] = ..., segments: _Optional[_Iterable[_Union[Segment, _Mapping]]] = ..., size_bytes: _Optional[int] = ...) -> None: ...

class FrameTable(_message.Message):
    __slots__ = ("kinds", "refs", "offsets", "is_return")
    KINDS_FIELD_NUMBER: _ClassVar[int]
    REFS_FIELD_NUMBER: _ClassVar[int]
    OFFSETS_FIELD_NUMBER: _ClassVar[int]
    IS_RETURN_FIELD_NUMBER: _ClassVar[int]
    kinds: Column
    refs: Column
    offsets: Column
    is_return: Column
    def __init__(self, kinds: _Optional[_Union[Column, _Mapping]] = ..., refs: _Optional[_Union[Column, _Mapping]] = ..., offsets: _Optional[_Union[Column, _Mapping]] = ..., is_return: _Optional[_Union[Column, _Mapping]] = ...) -> None: ...

class StackTable(_message.Message):
    __slots__ = ("parent_distances", "frames", "climbs", "lengths", "child_counts", "first_children", "first_choices", "next_choices", "next_children")
    PARENT_DISTANCES_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    CLIMBS_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    CHILD_COUNTS_FIELD_NUMBER: _ClassVar[int]
    FIRST_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    FIRST_CHOICES_FIELD_NUMBER: _ClassVar[int]
    NEXT_CHOICES_FIELD_NUMBER: _ClassVar[int]
    NEXT_CHILDREN_FIELD_NUMBER: _ClassVar[int]
    parent_distances: Column
    frames: Column
    climbs: Column
    lengths: Column
    child_counts: Column
    first_children: Column
    first_choices: Column
    next_choices: Column
    next_children: Column
    def __init__(self, parent_distances: _Optional[_Union[Column, _Mapping]] = ..., frames: _Optional[_Union[Column, _Mapping]] = ..., climbs: _Optional[_Union[Column, _Mapping]] = ..., lengths: _Optional[_Union[Column, _Mapping]] = ..., child_counts: _Optional[_Union[Column, _Mapping]] = ..., first_children: _Optional[_Union[Column, _Mapping]] = ..., first_choices: _Optional[_Union[Column, _Mapping]] = ..., next_choices: _Optional[_Union[Column, _Mapping]] = ..., next_children: _Optional[_Union[Column, _Mapping]] = ...) -> None: ...

class KeyTable(_message.Message):
    __slots__ = ("stacks", "seconds", "objects", "threads", "classes")
    STACKS_FIELD_NUMBER: _ClassVar[int]
    SECONDS_FIELD_NUMBER: _ClassVar[int]
    OBJECTS_FIELD_NUMBER: _ClassVar[int]
    THREADS_FIELD_NUMBER: _ClassVar[int]
    CLASSES_FIELD_NUMBER: _ClassVar[int]
    stacks: Column
    seconds: Column
    objects: Column
    threads: Column
    classes: Column
    def __init__(self, stacks: _Optional[_Union[Column, _Mapping]] = ..., seconds: _Optional[_Union[Column, _Mapping]] = ..., objects: _Optional[_Union[Column, _Mapping]] = ..., threads: _Optional[_Union[Column, _Mapping]] = ..., classes: _Optional[_Union[Column, _Mapping]] = ...) -> None: ...

class ValueColumn(_message.Message):
    __slots__ = ("name", "unit", "merge", "values", "times_first")
    NAME_FIELD_NUMBER: _ClassVar[int]
    UNIT_FIELD_NUMBER: _ClassVar[int]
    MERGE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    TIMES_FIRST_FIELD_NUMBER: _ClassVar[int]
    name: str
    unit: str
    merge: Merge
    values: Column
    times_first: int
    def __init__(self, name: _Optional[str] = ..., unit: _Optional[str] = ..., merge: _Optional[_Union[Merge, str]] = ..., values: _Optional[_Union[Column, _Mapping]] = ..., times_first: _Optional[int] = ...) -> None: ...

class Label(_message.Message):
    __slots__ = ("name", "value")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    name: str
    value: bytes
    def __init__(self, name: _Optional[str] = ..., value: _Optional[bytes] = ...) -> None: ...

class Series(_message.Message):
    __slots__ = ("labels", "kind", "known_keys", "new_keys", "columns")
    LABELS_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    KNOWN_KEYS_FIELD_NUMBER: _ClassVar[int]
    NEW_KEYS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    labels: _containers.RepeatedCompositeFieldContainer[Label]
    kind: str
    known_keys: Column
    new_keys: KeyTable
    columns: _containers.RepeatedCompositeFieldContainer[ValueColumn]
    def __init__(self, labels: _Optional[_Iterable[_Union[Label, _Mapping]]] = ..., kind: _Optional[str] = ..., known_keys: _Optional[_Union[Column, _Mapping]] = ..., new_keys: _Optional[_Union[KeyTable, _Mapping]] = ..., columns: _Optional[_Iterable[_Union[ValueColumn, _Mapping]]] = ...) -> None: ...

class Loss(_message.Message):
    __slots__ = ("reason", "value")
    REASON_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    reason: _marks_pb2.LossReason
    value: int
    def __init__(self, reason: _Optional[_Union[_marks_pb2.LossReason, str]] = ..., value: _Optional[int] = ...) -> None: ...

class Account(_message.Message):
    __slots__ = ("kind", "expected", "stored", "idle", "filtered", "losses")
    KIND_FIELD_NUMBER: _ClassVar[int]
    EXPECTED_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    IDLE_FIELD_NUMBER: _ClassVar[int]
    FILTERED_FIELD_NUMBER: _ClassVar[int]
    LOSSES_FIELD_NUMBER: _ClassVar[int]
    kind: str
    expected: int
    stored: int
    idle: int
    filtered: int
    losses: _containers.RepeatedCompositeFieldContainer[Loss]
    def __init__(self, kind: _Optional[str] = ..., expected: _Optional[int] = ..., stored: _Optional[int] = ..., idle: _Optional[int] = ..., filtered: _Optional[int] = ..., losses: _Optional[_Iterable[_Union[Loss, _Mapping]]] = ...) -> None: ...

class HostFacts(_message.Message):
    __slots__ = ("host", "kernel_release", "online_cpus", "agent_version", "rate_hz", "flags", "window_s")
    HOST_FIELD_NUMBER: _ClassVar[int]
    KERNEL_RELEASE_FIELD_NUMBER: _ClassVar[int]
    ONLINE_CPUS_FIELD_NUMBER: _ClassVar[int]
    AGENT_VERSION_FIELD_NUMBER: _ClassVar[int]
    RATE_HZ_FIELD_NUMBER: _ClassVar[int]
    FLAGS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_S_FIELD_NUMBER: _ClassVar[int]
    host: bytes
    kernel_release: bytes
    online_cpus: int
    agent_version: str
    rate_hz: int
    flags: _containers.RepeatedScalarFieldContainer[str]
    window_s: int
    def __init__(self, host: _Optional[bytes] = ..., kernel_release: _Optional[bytes] = ..., online_cpus: _Optional[int] = ..., agent_version: _Optional[str] = ..., rate_hz: _Optional[int] = ..., flags: _Optional[_Iterable[str]] = ..., window_s: _Optional[int] = ...) -> None: ...

class FoldedBatch(_message.Message):
    __slots__ = ("version", "host", "strings", "binaries", "frames", "stacks", "series", "accounts")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    HOST_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    BINARIES_FIELD_NUMBER: _ClassVar[int]
    FRAMES_FIELD_NUMBER: _ClassVar[int]
    STACKS_FIELD_NUMBER: _ClassVar[int]
    SERIES_FIELD_NUMBER: _ClassVar[int]
    ACCOUNTS_FIELD_NUMBER: _ClassVar[int]
    version: int
    host: HostFacts
    strings: StringTable
    binaries: _containers.RepeatedCompositeFieldContainer[Binary]
    frames: FrameTable
    stacks: StackTable
    series: _containers.RepeatedCompositeFieldContainer[Series]
    accounts: _containers.RepeatedCompositeFieldContainer[Account]
    def __init__(self, version: _Optional[int] = ..., host: _Optional[_Union[HostFacts, _Mapping]] = ..., strings: _Optional[_Union[StringTable, _Mapping]] = ..., binaries: _Optional[_Iterable[_Union[Binary, _Mapping]]] = ..., frames: _Optional[_Union[FrameTable, _Mapping]] = ..., stacks: _Optional[_Union[StackTable, _Mapping]] = ..., series: _Optional[_Iterable[_Union[Series, _Mapping]]] = ..., accounts: _Optional[_Iterable[_Union[Account, _Mapping]]] = ...) -> None: ...
