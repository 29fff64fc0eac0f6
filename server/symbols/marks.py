# SPDX-License-Identifier: Apache-2.0
"""The words of marks, taken from the enum of marks.proto and from nowhere else."""

from emberwatch.v1 import marks_pb2

_LOST = "STACK_LOST_"
_STOPPED = "UNWIND_STOPPED_"
_ERROR_CODES = ("ENOMEM", "EEXIST", "EFAULT")


def mark_words(mark: int) -> str:
    """How a mark is shown, for example "[exec race]". A number that a newer agent sent is shown as a number."""
    if mark not in marks_pb2.Mark.values():
        return f"[mark {mark}]"
    name = marks_pb2.Mark.Name(marks_pb2.Mark.ValueType(mark)).removeprefix("MARK_")
    if name.startswith(_LOST):
        cause = name.removeprefix(_LOST)
        return f"[stack lost: {cause if cause in _ERROR_CODES else _words(cause)}]"
    if name.startswith(_STOPPED):
        return f"[unwind stopped: {_words(name.removeprefix(_STOPPED))}]"
    return f"[{_words(name)}]"


def _words(name: str) -> str:
    return name.lower().replace("_", " ")
