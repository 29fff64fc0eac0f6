# SPDX-License-Identifier: Apache-2.0
"""A record is read back exactly, or not at all."""

import dataclasses

import pytest

from agent.records.window import SHIPPED_KINDS
from agent.ship.record import HEADER_BYTES, RecordError, bytes_from_parcel, id_from_file_name, id_of_parcel, parcel_from_bytes
from tests.support.parcels import parcel_of


def test_parcel_comes_back_as_it_was() -> None:
    parcel = dataclasses.replace(parcel_of(7, samples=23), part=2, is_last_part=False)
    assert parcel_from_bytes(bytes_from_parcel(parcel)) == parcel


def test_name_tells_what_is_lost_without_opening_the_file() -> None:
    record = id_of_parcel(parcel_of(7, samples=23))
    assert record.file_name.endswith("-000000000007-001700000070-23.parcel")
    assert id_from_file_name(record.file_name) == record
    every_kind = id_of_parcel(parcel_of(7, samples=23, others=tuple(range(1, len(SHIPPED_KINDS)))))
    assert every_kind.file_name.endswith("-23_1_2_3_4_5_6_7_8_9.parcel")
    assert id_from_file_name(every_kind.file_name) == every_kind


def test_names_sort_like_windows() -> None:
    ids = [id_of_parcel(parcel_of(sequence)) for sequence in (1, 9, 10, 123)]
    assert sorted(record.file_name for record in ids) == [record.file_name for record in sorted(ids)]


@pytest.mark.parametrize(
    "name", ["", "notes.txt", "1-2-3-4.parcel.writing", "x-2-3-4.parcel", "-1-2-3-4.parcel", "1-2-3.parcel", "１-2-3-4.parcel"]
)
def test_foreign_names_are_no_records(name: str) -> None:
    assert id_from_file_name(name) is None


def test_every_flipped_byte_is_noticed() -> None:
    data = bytearray(bytes_from_parcel(parcel_of(7, payload=b"frames")))
    for at in range(len(data)):
        data[at] ^= 0x40
        with pytest.raises(RecordError):
            parcel_from_bytes(bytes(data))
        data[at] ^= 0x40


def test_every_cut_and_every_addition_is_noticed() -> None:
    data = bytes_from_parcel(parcel_of(7, payload=b"frames"))
    assert len(data) == HEADER_BYTES + 6
    for wrong in [*(data[:size] for size in range(len(data))), data + b"\0", data + data]:
        with pytest.raises(RecordError):
            parcel_from_bytes(wrong)
