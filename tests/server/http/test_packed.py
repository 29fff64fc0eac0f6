# SPDX-License-Identifier: Apache-2.0
"""Graphs packed for the page: the bytes by hand, and the same answer as in JSON."""

import json
import struct
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from server.http.packed import PACKED_TYPE, json_bytes, packed
from tests.server.http.clients import RANGE, ROWS, client

FORMATS = {"f8": "d", "i4": "i", "u1": "B"}


def test_columns_stand_behind_the_json_at_multiples_of_eight() -> None:
    answer = {"unit": "ns", "nodes": {"depth": np.array([0, 1, -1], np.int32), "total": np.array([7, 2**53]), "low": [None]}}
    head = b'{"unit":"ns","nodes":{"low":[null]},"packed":[["nodes","depth","i4",3],["nodes","total","f8",2]]}'
    head += b" " * 3  # 4 + 97 + 3 is 104
    depth = struct.pack("<iii4x", 0, 1, -1)
    total = struct.pack("<dd", 7, 2**53)
    assert packed(answer) == struct.pack("<I", len(head)) + head + depth + total
    assert json_bytes(answer) == b'{"unit":"ns","nodes":{"depth":[0,1,-1],"total":[7,9007199254740992],"low":[null]}}'


def test_yes_and_no_are_one_and_zero_in_both() -> None:
    answer = {"nodes": {"matched": np.array([True, False])}}
    assert packed(answer)[-8:] == bytes([1, 0, 0, 0, 0, 0, 0, 0])
    assert json_bytes(answer) == b'{"nodes":{"matched":[1,0]}}'


def test_what_has_no_form_in_json_is_no_answer() -> None:
    with pytest.raises(TypeError, match="bytes has no form in JSON"):
        json_bytes({"nodes": b""})


SIDES = "&".join(f"{side}={quote(query)}" for side, query in (("a", 'cpu{host="a"}'), ("b", 'cpu{host="b"}')))


@pytest.mark.parametrize("path", [f"/api/v1/flamegraph?{RANGE}&search=main", f"/api/v1/diff?{RANGE}&{SIDES}"])
def test_a_graph_is_packed_for_who_names_the_type_and_says_the_same_as_json(path: str) -> None:
    given = client(ROWS)
    plain = given.get(path, headers={"Accept": "*/*"})
    response = given.get(path, headers={"Accept": f"{PACKED_TYPE}, application/json"})
    assert (plain.mimetype, response.mimetype) == ("application/json", PACKED_TYPE)
    assert "Accept" in response.headers["Vary"]
    assert "Accept" in plain.headers["Vary"]
    assert _unpacked(response.data) == plain.get_json()
    assert given.get(f"{path}&widht_px=9", headers={"Accept": PACKED_TYPE}).mimetype == "application/json"


def _unpacked(data: bytes) -> dict[str, Any]:
    """Read it as web/core/columns.js does."""
    at = 4 + int.from_bytes(data[:4], "little")
    answer: dict[str, Any] = json.loads(data[4:at])
    for table, name, kind, length in answer.pop("packed"):
        values = struct.unpack_from(f"<{length}{FORMATS[kind]}", data, at)
        answer[table][name] = list(values)
        size = struct.calcsize(f"{length}{FORMATS[kind]}")
        at += size + -size % 8
    assert at == len(data)
    return answer
