# SPDX-License-Identifier: Apache-2.0
"""Tests of the reader of kallsyms."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agent.kernel.kallsyms import Kallsyms, Symbol, read_kallsyms


def test_owned_symbols_stand_behind_the_image() -> None:
    raw = b"ffffffff81000000 T _text\nffffffff81000040 t a[b\nffffffffc0000000 t f.isra.0\t[ext4]\nffffffffc0000007 r data\t[bpf]\n"
    assert Kallsyms(raw, False).owned() == [
        Symbol(0xFFFFFFFFC0000000, b"t", b"f.isra.0", b"ext4"),
        Symbol(0xFFFFFFFFC0000007, b"r", b"data", b"bpf"),
    ]


def test_without_text_the_image_starts_at_stext() -> None:
    assert Kallsyms(b"ff00 T _stext\nff70 T _etext\n", False).image() == (0xFF00, 0xFF70)
    assert Kallsyms(b"fe00 T _text\nff00 T _stext\nff70 T _etext\n", False).image() == (0xFE00, 0xFF70)
    assert Kallsyms(b"ff00 T _stext\n", False).image() is None
    assert Kallsyms(b"ff70 T _text\nff00 T _etext\n", False).image() is None


def test_a_missing_file_is_hidden(tmp_path: Path) -> None:
    assert read_kallsyms(tmp_path / "none").is_hidden


@given(st.binary(max_size=200))
def test_no_bytes_raise(raw: bytes) -> None:
    found = Kallsyms(raw + b"\t[x]\n", False)
    found.image()
    found.owned()
    found.text_symbols(b"x", 0, 1 << 64)
