from emberwatch.v1 import batch_pb2 as _batch_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class UploadFormat(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UPLOAD_FORMAT_UNSPECIFIED: _ClassVar[UploadFormat]
    UPLOAD_FORMAT_ELF: _ClassVar[UploadFormat]
    UPLOAD_FORMAT_KALLSYMS: _ClassVar[UploadFormat]

class UploadStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UPLOAD_STATUS_UNSPECIFIED: _ClassVar[UploadStatus]
    UPLOAD_STATUS_CONTINUE: _ClassVar[UploadStatus]
    UPLOAD_STATUS_DONE: _ClassVar[UploadStatus]
    UPLOAD_STATUS_NOT_WANTED: _ClassVar[UploadStatus]

class UnwindTableStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    UNWIND_TABLE_STATUS_UNSPECIFIED: _ClassVar[UnwindTableStatus]
    UNWIND_TABLE_STATUS_FOUND: _ClassVar[UnwindTableStatus]
    UNWIND_TABLE_STATUS_UNKNOWN: _ClassVar[UnwindTableStatus]
    UNWIND_TABLE_STATUS_STORED: _ClassVar[UnwindTableStatus]
    UNWIND_TABLE_STATUS_NOT_WANTED: _ClassVar[UnwindTableStatus]
UPLOAD_FORMAT_UNSPECIFIED: UploadFormat
UPLOAD_FORMAT_ELF: UploadFormat
UPLOAD_FORMAT_KALLSYMS: UploadFormat
UPLOAD_STATUS_UNSPECIFIED: UploadStatus
UPLOAD_STATUS_CONTINUE: UploadStatus
UPLOAD_STATUS_DONE: UploadStatus
UPLOAD_STATUS_NOT_WANTED: UploadStatus
UNWIND_TABLE_STATUS_UNSPECIFIED: UnwindTableStatus
UNWIND_TABLE_STATUS_FOUND: UnwindTableStatus
UNWIND_TABLE_STATUS_UNKNOWN: UnwindTableStatus
UNWIND_TABLE_STATUS_STORED: UnwindTableStatus
UNWIND_TABLE_STATUS_NOT_WANTED: UnwindTableStatus

class SymbolRequest(_message.Message):
    __slots__ = ("kind", "id")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    kind: _batch_pb2.BinaryKind
    id: _batch_pb2.BinaryId
    def __init__(self, kind: _Optional[_Union[_batch_pb2.BinaryKind, str]] = ..., id: _Optional[_Union[_batch_pb2.BinaryId, _Mapping]] = ...) -> None: ...

class UploadRequest(_message.Message):
    __slots__ = ("kind", "id", "format", "size_bytes", "offset", "data", "upload_hash")
    KIND_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    SIZE_BYTES_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    UPLOAD_HASH_FIELD_NUMBER: _ClassVar[int]
    kind: _batch_pb2.BinaryKind
    id: _batch_pb2.BinaryId
    format: UploadFormat
    size_bytes: int
    offset: int
    data: bytes
    upload_hash: bytes
    def __init__(self, kind: _Optional[_Union[_batch_pb2.BinaryKind, str]] = ..., id: _Optional[_Union[_batch_pb2.BinaryId, _Mapping]] = ..., format: _Optional[_Union[UploadFormat, str]] = ..., size_bytes: _Optional[int] = ..., offset: _Optional[int] = ..., data: _Optional[bytes] = ..., upload_hash: _Optional[bytes] = ...) -> None: ...

class UploadResponse(_message.Message):
    __slots__ = ("status", "next_offset", "reason")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    NEXT_OFFSET_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    status: UploadStatus
    next_offset: int
    reason: str
    def __init__(self, status: _Optional[_Union[UploadStatus, str]] = ..., next_offset: _Optional[int] = ..., reason: _Optional[str] = ...) -> None: ...

class UnwindTable(_message.Message):
    __slots__ = ("version", "packed")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PACKED_FIELD_NUMBER: _ClassVar[int]
    version: int
    packed: bytes
    def __init__(self, version: _Optional[int] = ..., packed: _Optional[bytes] = ...) -> None: ...

class GetUnwindTableRequest(_message.Message):
    __slots__ = ("id", "version")
    ID_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    id: _batch_pb2.BinaryId
    version: int
    def __init__(self, id: _Optional[_Union[_batch_pb2.BinaryId, _Mapping]] = ..., version: _Optional[int] = ...) -> None: ...

class GetUnwindTableResponse(_message.Message):
    __slots__ = ("status", "table")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    status: UnwindTableStatus
    table: UnwindTable
    def __init__(self, status: _Optional[_Union[UnwindTableStatus, str]] = ..., table: _Optional[_Union[UnwindTable, _Mapping]] = ...) -> None: ...

class PutUnwindTableRequest(_message.Message):
    __slots__ = ("id", "table")
    ID_FIELD_NUMBER: _ClassVar[int]
    TABLE_FIELD_NUMBER: _ClassVar[int]
    id: _batch_pb2.BinaryId
    table: UnwindTable
    def __init__(self, id: _Optional[_Union[_batch_pb2.BinaryId, _Mapping]] = ..., table: _Optional[_Union[UnwindTable, _Mapping]] = ...) -> None: ...

class PutUnwindTableResponse(_message.Message):
    __slots__ = ("status", "reason")
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    status: UnwindTableStatus
    reason: str
    def __init__(self, status: _Optional[_Union[UnwindTableStatus, str]] = ..., reason: _Optional[str] = ...) -> None: ...
