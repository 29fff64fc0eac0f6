# SPDX-License-Identifier: Apache-2.0
"""Graphs as the page reads them: what is said in JSON, then the long columns as they lie in memory, which need no parsing.

All is little endian: the length of the JSON (u32), the JSON, then the columns one behind the other. JSON and columns are filled up to
multiples of 8 bytes, counted from the start. `packed` in the JSON lists the columns in order, each as [table, name, type, length]: it is
`answer[table][name]`, and its type i4, f8 (whole numbers up to 2^53 too) or u1. In plain JSON the same columns are lists.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

PACKED_TYPE = "application/x-emberwatch-columns"
_ALIGNED_BYTES = 8
_TYPES = {"b1": "u1", "i1": "u1", "u1": "u1", "i4": "i4", "i8": "f8", "f8": "f8"}


def packed(answer: Mapping[str, Any]) -> bytes:
    """Pack an answer; its columns are the arrays in its tables, of types that _TYPES knows."""
    tables = {key: value for key, value in answer.items() if isinstance(value, dict)}
    columns = [
        (table, name, _as_told(column))
        for table, of_table in tables.items()
        for name, column in of_table.items()
        if isinstance(column, np.ndarray)
    ]
    told = [[table, name, column.dtype.str[1:], column.size] for table, name, column in columns]
    rest = {key: {n: c for n, c in table.items() if not isinstance(c, np.ndarray)} for key, table in tables.items()}
    head = json_bytes({**answer, **rest, "packed": told})
    head += b" " * (-(4 + len(head)) % _ALIGNED_BYTES)
    bodies = [column.tobytes() for _, _, column in columns]
    return b"".join([len(head).to_bytes(4, "little"), head, *(body + bytes(-len(body) % _ALIGNED_BYTES) for body in bodies)])


def json_bytes(answer: Mapping[str, Any]) -> bytes:
    """Write JSON, arrays as lists. Text is ASCII with escapes, so that line separators and lone surrogates are no question anywhere."""
    return json.dumps(answer, separators=(",", ":"), allow_nan=False, default=_listed).encode()


def _listed(column: object) -> object:
    if not isinstance(column, np.ndarray):
        raise TypeError(f"{type(column).__name__} has no form in JSON")
    return (column.astype(np.uint8) if column.dtype == np.bool_ else column).tolist()


def _as_told(column: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return column.astype(f"<{_TYPES[column.dtype.str[1:]]}", copy=False)
