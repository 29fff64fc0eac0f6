# SPDX-License-Identifier: Apache-2.0
"""Tests of the parser of perf maps."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.process.perf_map import MAX_NAME_BYTES, parse_perf_map, size_bytes
from agent.records.process import PerfMap

LINES_MAX = 1000
NODE = b"2ac80e83c246 60 LazyCompile:~value node:internal/console/constructor:314\n"


def parse(raw: bytes) -> PerfMap:
    return parse_perf_map(raw, LINES_MAX).perf_map


def name_at(perf_map: PerfMap, addr: int) -> bytes | None:
    index = perf_map.find(addr)
    return None if index is None else perf_map.names[index]


def test_sizes_are_hex_and_names_keep_their_spaces() -> None:
    found = parse(NODE)
    assert name_at(found, 0x2AC80E83C250) == b"LazyCompile:~value node:internal/console/constructor:314"
    assert name_at(found, 0x2AC80E83C246 + 0x5F) is not None
    assert name_at(found, 0x2AC80E83C246 + 0x60) is None
    assert name_at(found, 0x2AC80E83C245) is None


def test_prefixes_semicolons_and_bad_utf8_pass() -> None:
    found = parse(b"0x10 0x7 Lsun/net/spi/DefaultProxySelector$3;::run\n20 7 \xd0\xbf\xd1\n")
    assert list(found.names) == [b"Lsun/net/spi/DefaultProxySelector$3;::run", b"\xd0\xbf\xd1"]


def test_lines_are_sorted_by_start() -> None:
    found = parse(b"30 7 c\n10 7 a\n20 7 b\n")
    assert (found.starts.tolist(), found.ends.tolist(), list(found.names)) == ([0x10, 0x20, 0x30], [0x17, 0x27, 0x37], [b"a", b"b", b"c"])


def test_a_later_line_wins_and_leaves_the_rest_of_the_earlier() -> None:
    found = parse(b"10 20 old\n18 8 new\n")
    assert (found.starts.tolist(), found.ends.tolist(), list(found.names)) == (
        [0x10, 0x18, 0x20],
        [0x18, 0x20, 0x30],
        [b"old", b"new", b"old"],
    )
    assert list(parse(b"18 8 first\n10 20 second\n").names) == [b"second"]
    assert list(parse(b"10 8 first\n10 8 second\n").names) == [b"second"]


def test_the_last_line_counts_when_it_is_whole() -> None:
    assert list(parse(b"10 7 a\n20 7 b").names) == [b"a"]
    assert list(parse(b"10 7 a\n20 7 bcd\n").names) == [b"a", b"bcd"]
    assert len(parse(b"").names) == len(parse(b"10 7").names) == 0


def test_lines_that_are_none_are_counted() -> None:
    bad = (
        b"\n",
        b"10\n",
        b"10 7\n",
        b"10 7 \n",
        b"xyz 7 a\n",
        b"10 g a\n",
        b"10 0 a\n",
        b"ffffffffffffffff 7 a\n",
        b"1" * 17 + b" 7 a\n",
        b" 10 7 a\n",
    )
    for line in bad:
        found = parse_perf_map(NODE + line + b"10 7 z\n", LINES_MAX)
        assert (found.malformed, list(found.perf_map.names)[:1]) == (1, [b"z"]), line


def test_lines_over_the_limit_are_not_read() -> None:
    raw = b"".join(b"%x 1 f\n" % n for n in range(7, 7 + 23))
    for limit, is_truncated in ((22, True), (23, False), (24, False)):
        found = parse_perf_map(raw, limit)
        assert (len(found.perf_map.names), found.is_truncated) == (min(limit, 23), is_truncated)


def test_a_name_is_cut_at_its_limit() -> None:
    assert len(parse(b"10 7 " + b"n" * (MAX_NAME_BYTES + 7) + b"\n").names[0]) == MAX_NAME_BYTES


def test_text_of_overwritten_lines_takes_no_memory() -> None:
    found = parse_perf_map(b"10 7 overwritten many times\n" * 900, LINES_MAX).perf_map
    assert size_bytes(found) < 100


@given(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 40)), max_size=30))
def test_overlaps_come_out_as_painted_one_by_one(ranges: list[tuple[int, int]]) -> None:
    painted: dict[int, bytes] = {}
    for index, (start, size) in enumerate(ranges):
        painted |= dict.fromkeys(range(start, start + size), b"f%d" % index)
    found = parse(b"".join(b"%x %x f%d\n" % (start, size, index) for index, (start, size) in enumerate(ranges)))
    assert {addr: name for addr in range(110) if (name := name_at(found, addr)) is not None} == painted


@given(st.binary(max_size=200))
def test_no_bytes_raise(raw: bytes) -> None:
    list(parse(raw + b"\n").names)


@pytest.mark.parametrize("filler", [b" ", b"10 1 ", b"1 1 \n"], ids=["blanks", "one line", "lines without names"])
def test_text_that_names_nothing_takes_no_memory_beyond_itself(filler: bytes) -> None:
    raw = filler * ((8 << 20) // len(filler)) + b"\n10 7 f\n"
    tracemalloc.start()
    try:
        parse = parse_perf_map(raw, len(raw))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert list(parse.perf_map.names) == [b"f"]
    assert peak_bytes < 4 * len(raw)  # 12 times as much when blanks were found in all of it at once


def test_lines_across_pieces_are_whole() -> None:
    """Pieces are cut at newlines: lines of 23 bytes fall on every place of the cut."""
    raw = b"".join(b"%08x 1 name%06d\n" % (n * 16, n) for n in range(1, 30_001))
    parse = parse_perf_map(raw, 29_989)
    assert parse.is_truncated and parse.malformed == 0
    assert parse.perf_map.starts.tolist() == [n * 16 for n in range(1, 29_990)]
    assert [parse.perf_map.names[at] for at in (0, 11_396, 29_988)] == [b"name000001", b"name011397", b"name029989"]
