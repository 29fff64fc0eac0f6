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
UPLOAD_FORMAT_UNSPECIFIED: UploadFormat
UPLOAD_FORMAT_ELF: UploadFormat
UPLOAD_FORMAT_KALLSYMS: UploadFormat
UPLOAD_STATUS_UNSPECIFIED: UploadStatus
UPLOAD_STATUS_CONTINUE: UploadStatus
UPLOAD_STATUS_DONE: UploadStatus
UPLOAD_STATUS_NOT_WANTED: UploadStatus

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
