# SPDX-License-Identifier: Apache-2.0
"""Tests of the tables that agents leave for one another."""

from pathlib import Path

import pytest

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from emberwatch.v1.unwind_table import VERSION, identity_digest, pack_reason
from server.errors import BadRequest, ServerError
from server.symbols.unwind_tables import UnwindTables
from tests.support.unwind_tables import PACKED, TABLE_ID, packed_for

UNKNOWN, FOUND = symbols_pb2.UNWIND_TABLE_STATUS_UNKNOWN, symbols_pb2.UNWIND_TABLE_STATUS_FOUND
STORED, NOT_WANTED = symbols_pb2.UNWIND_TABLE_STATUS_STORED, symbols_pb2.UNWIND_TABLE_STATUS_NOT_WANTED


def other_id(number: int) -> pb.BinaryId:
    return pb.BinaryId(build_id_kind=pb.BUILD_ID_KIND_GNU, build_id=bytes((number,)) * 20, content_hash=bytes(16))


def put(tables: UnwindTables, binary: pb.BinaryId, packed: bytes, version: int = VERSION) -> symbols_pb2.UnwindTableStatus:
    table = symbols_pb2.UnwindTable(version=version, packed=packed)
    return tables.put(symbols_pb2.PutUnwindTableRequest(id=binary, table=table)).status


def get(tables: UnwindTables, binary: pb.BinaryId, version: int = VERSION) -> tuple[symbols_pb2.UnwindTableStatus, bytes]:
    answer = tables.get(symbols_pb2.GetUnwindTableRequest(id=binary, version=version))
    return answer.status, answer.table.packed


def test_a_table_is_kept_over_a_restart(tmp_path: Path) -> None:
    assert put(UnwindTables(tmp_path), TABLE_ID, PACKED) == STORED
    tables = UnwindTables(tmp_path)
    assert get(tables, TABLE_ID) == (FOUND, PACKED)
    assert get(tables, other_id(3)) == (UNKNOWN, b"")
    assert tables.size_bytes() == len(PACKED)


def test_the_first_table_stays(tmp_path: Path) -> None:
    tables = UnwindTables(tmp_path)
    put(tables, TABLE_ID, PACKED)
    assert put(tables, TABLE_ID, packed_for(TABLE_ID, 3)) == NOT_WANTED
    assert get(tables, TABLE_ID) == (FOUND, PACKED)


def test_other_versions_are_neither_kept_nor_given(tmp_path: Path) -> None:
    tables = UnwindTables(tmp_path)
    assert put(tables, TABLE_ID, PACKED, VERSION + 1) == NOT_WANTED
    put(tables, TABLE_ID, PACKED)
    assert get(tables, TABLE_ID, VERSION + 1) == (UNKNOWN, b"")


@pytest.mark.parametrize(
    "packed",
    [
        b"",
        PACKED[:-1],
        packed_for(other_id(3)),
        pack_reason(4, identity_digest(TABLE_ID.build_id_kind, TABLE_ID.build_id, TABLE_ID.content_hash)),
    ],
)
def test_what_is_no_table_of_the_binary_is_refused(tmp_path: Path, packed: bytes) -> None:
    tables = UnwindTables(tmp_path)
    with pytest.raises(BadRequest):
        put(tables, TABLE_ID, packed)
    assert list(tmp_path.iterdir()) == []


def test_an_identity_that_no_binary_has_is_refused(tmp_path: Path) -> None:
    tables = UnwindTables(tmp_path)
    with pytest.raises(BadRequest):
        get(tables, pb.BinaryId())


def test_a_damaged_file_makes_room_for_a_new_offer(tmp_path: Path) -> None:
    tables = UnwindTables(tmp_path)
    put(tables, TABLE_ID, PACKED)
    next(tmp_path.iterdir()).write_bytes(PACKED[:-1])
    assert get(tables, TABLE_ID) == (UNKNOWN, b"")
    assert put(tables, TABLE_ID, PACKED) == STORED


def test_the_table_used_longest_ago_leaves_first(tmp_path: Path) -> None:
    tables = UnwindTables(tmp_path, max_bytes=2 * len(PACKED))
    for number in (1, 2):
        put(tables, other_id(number), packed_for(other_id(number)))
    get(tables, other_id(1))
    put(tables, other_id(3), packed_for(other_id(3)))
    assert [get(tables, other_id(number))[0] for number in (1, 2, 3)] == [FOUND, UNKNOWN, FOUND]


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ServerError, match="cannot keep unwind tables"):
        UnwindTables(tmp_path / "file")
