from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from typing import ClassVar as _ClassVar

DESCRIPTOR: _descriptor.FileDescriptor

class Mark(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MARK_UNSPECIFIED: _ClassVar[Mark]
    MARK_TRUNCATED: _ClassVar[Mark]
    MARK_EXITED: _ClassVar[Mark]
    MARK_EXEC_RACE: _ClassVar[Mark]
    MARK_STACK_LOST_ENOMEM: _ClassVar[Mark]
    MARK_STACK_LOST_EEXIST: _ClassVar[Mark]
    MARK_STACK_LOST_EFAULT: _ClassVar[Mark]
    MARK_STACK_LOST_MAP_FULL: _ClassVar[Mark]
    MARK_NO_MAPPING: _ClassVar[Mark]
    MARK_ANONYMOUS: _ClassVar[Mark]
    MARK_KERNEL_HIDDEN: _ClassVar[Mark]
    MARK_VSYSCALL: _ClassVar[Mark]
    MARK_UNREADABLE_FILE: _ClassVar[Mark]
    MARK_STACK_LOST_OTHER: _ClassVar[Mark]
    MARK_JIT: _ClassVar[Mark]
    MARK_NO_STACK: _ClassVar[Mark]

class LossReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    LOSS_REASON_UNSPECIFIED: _ClassVar[LossReason]
    LOSS_REASON_MAP_FULL: _ClassVar[LossReason]
    LOSS_REASON_MAP_BUSY: _ClassVar[LossReason]
    LOSS_REASON_TIMER_MISSED: _ClassVar[LossReason]
    LOSS_REASON_CPU_OFFLINE: _ClassVar[LossReason]
    LOSS_REASON_AGENT_DOWN: _ClassVar[LossReason]
    LOSS_REASON_AGENT_OVERRUN: _ClassVar[LossReason]
    LOSS_REASON_SPOOL_EVICTED: _ClassVar[LossReason]
    LOSS_REASON_SPOOL_CORRUPT: _ClassVar[LossReason]
    LOSS_REASON_REJECTED_LIMIT: _ClassVar[LossReason]
    LOSS_REASON_REJECTED_TIME: _ClassVar[LossReason]
    LOSS_REASON_REJECTED_AUTH: _ClassVar[LossReason]
    LOSS_REASON_SERVER_SHED: _ClassVar[LossReason]
    LOSS_REASON_UNEXPLAINED: _ClassVar[LossReason]
    LOSS_REASON_REJECTED_MALFORMED: _ClassVar[LossReason]
    LOSS_REASON_STACK_ENOMEM: _ClassVar[LossReason]
    LOSS_REASON_STACK_EEXIST: _ClassVar[LossReason]
    LOSS_REASON_STACK_EFAULT_USER: _ClassVar[LossReason]
    LOSS_REASON_STACK_MAP_FULL: _ClassVar[LossReason]
    LOSS_REASON_STACK_OTHER: _ClassVar[LossReason]
    LOSS_REASON_TRUNCATED: _ClassVar[LossReason]
    LOSS_REASON_EXITED: _ClassVar[LossReason]
    LOSS_REASON_EXEC_RACE: _ClassVar[LossReason]
MARK_UNSPECIFIED: Mark
MARK_TRUNCATED: Mark
MARK_EXITED: Mark
MARK_EXEC_RACE: Mark
MARK_STACK_LOST_ENOMEM: Mark
MARK_STACK_LOST_EEXIST: Mark
MARK_STACK_LOST_EFAULT: Mark
MARK_STACK_LOST_MAP_FULL: Mark
MARK_NO_MAPPING: Mark
MARK_ANONYMOUS: Mark
MARK_KERNEL_HIDDEN: Mark
MARK_VSYSCALL: Mark
MARK_UNREADABLE_FILE: Mark
MARK_STACK_LOST_OTHER: Mark
MARK_JIT: Mark
MARK_NO_STACK: Mark
LOSS_REASON_UNSPECIFIED: LossReason
LOSS_REASON_MAP_FULL: LossReason
LOSS_REASON_MAP_BUSY: LossReason
LOSS_REASON_TIMER_MISSED: LossReason
LOSS_REASON_CPU_OFFLINE: LossReason
LOSS_REASON_AGENT_DOWN: LossReason
LOSS_REASON_AGENT_OVERRUN: LossReason
LOSS_REASON_SPOOL_EVICTED: LossReason
LOSS_REASON_SPOOL_CORRUPT: LossReason
LOSS_REASON_REJECTED_LIMIT: LossReason
LOSS_REASON_REJECTED_TIME: LossReason
LOSS_REASON_REJECTED_AUTH: LossReason
LOSS_REASON_SERVER_SHED: LossReason
LOSS_REASON_UNEXPLAINED: LossReason
LOSS_REASON_REJECTED_MALFORMED: LossReason
LOSS_REASON_STACK_ENOMEM: LossReason
LOSS_REASON_STACK_EEXIST: LossReason
LOSS_REASON_STACK_EFAULT_USER: LossReason
LOSS_REASON_STACK_MAP_FULL: LossReason
LOSS_REASON_STACK_OTHER: LossReason
LOSS_REASON_TRUNCATED: LossReason
LOSS_REASON_EXITED: LossReason
LOSS_REASON_EXEC_RACE: LossReason
