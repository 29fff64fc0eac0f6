# SPDX-License-Identifier: Apache-2.0
"""Kernel names as agents send them."""

import pytest

from server.symbols.build_result import BuildStatus, Refused
from server.symbols.kallsyms import parse_kallsyms
from tests.server.symbols.test_symtab import listed

TEXT = b"""0 T _text
0 T _stext
40 t finish_task_switch.isra.0
c0 t finish_task_switch.isra.0.cold
c0 W weak_alias
100 D some_data
110 T __x64_sys_write
180 ! \n"""


def test_a_symbol_reaches_to_the_next_of_any_type() -> None:
    """Aliases: global, then weak, then local; then the shortest: `_text` before `_stext`."""
    assert listed(parse_kallsyms(TEXT)) == [
        (0x0, 0x40, "_text", False),
        (0x40, 0xC0, "finish_task_switch.isra.0", False),
        (0xC0, 0x100, "weak_alias", False),
        (0x110, 0x180, "__x64_sys_write", False),
    ]


def test_symbols_at_or_behind_the_end_have_no_code() -> None:
    assert listed(parse_kallsyms(b"0 T f\n80 T _etext\n90 T behind\n80 ! \n")) == [(0, 0x80, "f", False)]


def test_names_of_modules_and_odd_bytes_stay_whole() -> None:
    symbols = parse_kallsyms(b"0 t a b;\xff\n7 ! ")
    assert symbols.blob.tobytes() == b"a b;\xff"


@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"0 T f\n", TEXT[:-4], b"zz T f\n7 ! ", b"-7 T f\n7 ! ", b"0 T\n7 ! ", b"0\n7 ! ", b"1" * 40 + b" T f\n7 ! ", b"<html>"],
)
def test_anything_else_is_malformed(data: bytes) -> None:
    with pytest.raises(Refused) as caught:
        parse_kallsyms(data)
    assert caught.value.status == BuildStatus.MALFORMED
