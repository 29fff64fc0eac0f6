# SPDX-License-Identifier: Apache-2.0
"""Tests of the parser of /proc/PID/maps."""

import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.process.maps import MAX_MAPPINGS, parse_maps
from agent.records.process import Mapping


def test_only_executable_mappings_are_kept() -> None:
    raw = (
        b"55d651628000-55d65162a000 r--p 00000000 fe:00 260131                     /usr/bin/cat\n"
        b"55d65162a000-55d65162f000 r-xp 00002000 fe:00 260131                     /usr/bin/cat\n"
        b"7ffe3f1ac000-7ffe3f1cd000 rw-p 00000000 00:00 0                          [stack]\n"
        b"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]\n"
    )
    parse = parse_maps(raw)
    assert parse.mappings == (
        Mapping(0x55D65162A000, 0x55D65162F000, 0x2000, (0xFE, 0), 260131, b"/usr/bin/cat"),
        Mapping(0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, 0, (0, 0), 0, b"[vsyscall]"),
    )
    assert parse.malformed == 0


def test_a_path_keeps_its_spaces_newlines_and_bad_utf8() -> None:
    raw = b"1000-2000 r-xp 00000000 08:01 7 /a b/\\012new (deleted)\xd0\xbf\xd1 \n"
    assert parse_maps(raw).mappings[0].path == b"/a b/\nnew (deleted)\xd0\xbf\xd1 "


def test_anonymous_memory_has_an_empty_path() -> None:
    assert parse_maps(b"1000-2000 rwxp 00000000 00:00 0 \n").mappings[0].path == b""


def test_malformed_lines_are_counted_and_the_others_kept() -> None:
    good = b"1000-2000 r-xp 00000000 08:01 7 /x\n"
    bad = (
        b"\n",  # nothing
        b"3000 r-xp 00000000 08:01 7 /x\n",  # no end
        b"4000-3000 r-xp 00000000 08:01 7 /x\n",  # ends before it starts
        b"1800-2800 r-xp 00000000 08:01 7 /x\n",  # overlaps the good one
        b"3000-4000 r-xp zz 08:01 7 /x\n",  # offset is no number
        b"3000-4000 r-xp 00000000 0801 7 /x\n",  # device without colon
        b"3000-4000 r-xp 00000000 08:01 7 /" + b"x" * 5000 + b"\n",  # longer than any path
        b"3000-4000 r-xp 00000000 08:01 7 /cut",  # no newline
    )
    for line in bad:
        parse = parse_maps(good + line)
        assert (len(parse.mappings), parse.malformed) == (1, 1), line


def test_mappings_are_capped() -> None:
    raw = b"".join(b"%x-%x r-xp 00000000 08:01 7 /x\n" % (n * 4096, n * 4096 + 4096) for n in range(1, MAX_MAPPINGS + 8))
    parse = parse_maps(raw)
    assert (len(parse.mappings), parse.malformed) == (MAX_MAPPINGS, 7)


@given(st.binary(max_size=300))
def test_no_bytes_raise(raw: bytes) -> None:
    parse_maps(raw)
    parse_maps(b"1000-2000 r-xp " + raw + b"\n")


def test_our_own_maps_are_whole() -> None:
    parse = parse_maps(Path(f"/proc/{os.getpid()}/maps").read_bytes())
    assert parse.malformed == 0
    assert any(mapping.path == b"[vdso]" for mapping in parse.mappings)
