from emberwatch.v1 import batch_pb2 as _batch_pb2
from emberwatch.v1 import symbols_pb2 as _symbols_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PushStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PUSH_STATUS_UNSPECIFIED: _ClassVar[PushStatus]
    PUSH_STATUS_STORED: _ClassVar[PushStatus]
    PUSH_STATUS_DUPLICATE: _ClassVar[PushStatus]
    PUSH_STATUS_UNKNOWN_KEYS: _ClassVar[PushStatus]
PUSH_STATUS_UNSPECIFIED: PushStatus
PUSH_STATUS_STORED: PushStatus
PUSH_STATUS_DUPLICATE: PushStatus
PUSH_STATUS_UNKNOWN_KEYS: PushStatus

class PushRequest(_message.Message):
    __slots__ = ("agent_id", "epoch_unix_ns", "sequence", "part", "is_last_part", "window_start_unix_ns", "window_end_unix_ns", "payload", "raw_size_bytes", "raw_crc32", "dictionary_id")
    AGENT_ID_FIELD_NUMBER: _ClassVar[int]
    EPOCH_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    SEQUENCE_FIELD_NUMBER: _ClassVar[int]
    PART_FIELD_NUMBER: _ClassVar[int]
    IS_LAST_PART_FIELD_NUMBER: _ClassVar[int]
    WINDOW_START_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    WINDOW_END_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    PAYLOAD_FIELD_NUMBER: _ClassVar[int]
    RAW_SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    RAW_CRC32_FIELD_NUMBER: _ClassVar[int]
    DICTIONARY_ID_FIELD_NUMBER: _ClassVar[int]
    agent_id: bytes
    epoch_unix_ns: int
    sequence: int
    part: int
    is_last_part: bool
    window_start_unix_ns: int
    window_end_unix_ns: int
    payload: bytes
    raw_size_bytes: int
    raw_crc32: int
    dictionary_id: bytes
    def __init__(self, agent_id: _Optional[bytes] = ..., epoch_unix_ns: _Optional[int] = ..., sequence: _Optional[int] = ..., part: _Optional[int] = ..., is_last_part: _Optional[bool] = ..., window_start_unix_ns: _Optional[int] = ..., window_end_unix_ns: _Optional[int] = ..., payload: _Optional[bytes] = ..., raw_size_bytes: _Optional[int] = ..., raw_crc32: _Optional[int] = ..., dictionary_id: _Optional[bytes] = ...) -> None: ...

class SeriesKeys(_message.Message):
    __slots__ = ("series", "keys")
    SERIES_FIELD_NUMBER: _ClassVar[int]
    KEYS_FIELD_NUMBER: _ClassVar[int]
    series: int
    keys: _batch_pb2.Column
    def __init__(self, series: _Optional[int] = ..., keys: _Optional[_Union[_batch_pb2.Column, _Mapping]] = ...) -> None: ...

class AgentSettings(_message.Message):
    __slots__ = ("rate_hz", "kinds")
    RATE_HZ_FIELD_NUMBER: _ClassVar[int]
    KINDS_FIELD_NUMBER: _ClassVar[int]
    rate_hz: int
    kinds: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, rate_hz: _Optional[int] = ..., kinds: _Optional[_Iterable[str]] = ...) -> None: ...

class PushResponse(_message.Message):
    __slots__ = ("status", "dictionary_id", "new_key_ids", "unknown_keys", "wanted", "settings", "server_unix_ns", "pending_binaries")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DICTIONARY_ID_FIELD_NUMBER: _ClassVar[int]
    NEW_KEY_IDS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_KEYS_FIELD_NUMBER: _ClassVar[int]
    WANTED_FIELD_NUMBER: _ClassVar[int]
    SETTINGS_FIELD_NUMBER: _ClassVar[int]
    SERVER_UNIX_NS_FIELD_NUMBER: _ClassVar[int]
    PENDING_BINARIES_FIELD_NUMBER: _ClassVar[int]
    status: PushStatus
    dictionary_id: bytes
    new_key_ids: _containers.RepeatedCompositeFieldContainer[SeriesKeys]
    unknown_keys: _containers.RepeatedCompositeFieldContainer[SeriesKeys]
    wanted: _containers.RepeatedCompositeFieldContainer[_symbols_pb2.SymbolRequest]
    settings: AgentSettings
    server_unix_ns: int
    pending_binaries: int
    def __init__(self, status: _Optional[_Union[PushStatus, str]] = ..., dictionary_id: _Optional[bytes] = ..., new_key_ids: _Optional[_Iterable[_Union[SeriesKeys, _Mapping]]] = ..., unknown_keys: _Optional[_Iterable[_Union[SeriesKeys, _Mapping]]] = ..., wanted: _Optional[_Iterable[_Union[_symbols_pb2.SymbolRequest, _Mapping]]] = ..., settings: _Optional[_Union[AgentSettings, _Mapping]] = ..., server_unix_ns: _Optional[int] = ..., pending_binaries: _Optional[int] = ...) -> None: ...
