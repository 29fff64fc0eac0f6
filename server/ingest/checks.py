# SPDX-License-Identifier: Apache-2.0
"""The checks that all tables of a batch share. Too much is LimitExceeded and names the limit; nonsense is BadRequest."""

import re
from collections.abc import Sized
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns
from server.errors import BadRequest, LimitExceeded

T = TypeVar("T", bound=Sized)
U64 = npt.NDArray[np.uint64]
I64 = npt.NDArray[np.int64]

_NAME = re.compile(r"[a-z_][a-z0-9_]*")


def bounded(items: T, most: int, what: str) -> T:
    """`items` when there are no more than `most`."""
    if len(items) > most:
        raise LimitExceeded(f"{what}: {len(items)}; the limit is {most}")
    return items


def column(encoded: pb.Column, most: int, what: str) -> U64:
    """Decode a column of at most `most` elements."""
    if _elements(encoded) > most:
        raise LimitExceeded(f"{what}: {_elements(encoded)} entries; the limit is {most}")
    return columns.decode_column(encoded, most)


def column_of(encoded: pb.Column, count: int, what: str) -> U64:
    """Decode a column of exactly `count` elements."""
    if _elements(encoded) != count:
        raise BadRequest(f"{what}: {_elements(encoded)} entries where {count} belong")
    return columns.decode_column(encoded, count)


def indices(encoded: pb.Column, count: int, below: int, what: str) -> I64:
    """Decode a column of exactly `count` indices into a table of `below` entries."""
    values = column_of(encoded, count, what)
    check_below(values, below, what)
    return values.astype(np.int64)


def check_below(values: U64, below: int, what: str) -> None:
    """Every one of `values` lies in a table of `below` entries."""
    if values.size and int(values.max()) >= below:
        raise BadRequest(f"{what}: {int(values.max())} points outside of a table of {below} entries")


def name(text: str, most_bytes: int, what: str) -> str:
    """`text` when it is a name of kinds, labels and columns."""
    if len(text) > most_bytes:
        raise LimitExceeded(f"{what} has {len(text)} bytes; the limit is {most_bytes}")
    if not _NAME.fullmatch(text):
        raise BadRequest(f"{what} {text!r} does not consist of a-z, 0-9 and _")
    return text


def text_of(raw: bytes) -> str:
    """Bytes as text: what is not UTF-8, and NUL, as \\xNN."""
    return raw.decode("utf-8", "backslashreplace").replace("\0", "\\x00")


def _elements(encoded: pb.Column) -> int:
    return len(encoded.data) // max(1, encoded.width)
