# SPDX-License-Identifier: Apache-2.0
"""Numbers of places, and names that are too long."""

from agent.collect.places import IN_BINARY, PlaceTable, bounded_name
from emberwatch.v1 import batch_pb2 as pb
from tests.support.drains import elf


def test_equal_things_have_one_number() -> None:
    places = PlaceTable()
    first = places.number_of_binary(elf("app"))
    assert first == places.number_of_binary(elf("app")) != places.number_of_binary(elf("app", content=b"x" * 16))
    assert places.binary(first - IN_BINARY) == elf("app")
    jit = places.number_of_name(pb.PLACE_KIND_JIT, b"go")
    assert jit == places.number_of_name(pb.PLACE_KIND_JIT, b"go") != places.number_of_name(pb.PLACE_KIND_BPF, b"go")
    assert places.number_of_name(pb.PLACE_KIND_BPF, b"go", 7) != places.number_of_name(pb.PLACE_KIND_BPF, b"go", 8)
    assert places.name(jit) == (pb.PLACE_KIND_JIT, b"go", 0)


def test_name_at_the_limit_is_whole_and_one_over_is_cut() -> None:
    assert bounded_name(b"a" * 4096) == b"a" * 4096
    cut = bounded_name(b"a" * 4097)
    assert len(cut) == 4096
    assert cut.startswith(b"a" * 4084 + "\u2026#".encode())


def test_cut_names_stay_distinct_and_valid() -> None:
    first, second = bounded_name("\u00e9".encode() * 3000 + b"1"), bounded_name("\u00e9".encode() * 3000 + b"2")
    assert first != second
    assert len(first.decode()) == len(second.decode())
