# SPDX-License-Identifier: Apache-2.0
"""Includes are expanded once each, and every line keeps its file and number."""

import pytest

from agent.errors import KernelError
from agent.kernel.source import expand_includes, packaged_source


def test_include_is_replaced_and_marked() -> None:
    files = {"a.c": 'int one;\n#include "b.h"\nint three;\n', "b.h": "int two;\n"}
    assert expand_includes(["a.c"], files.__getitem__) == '#line 1 "a.c"\nint one;\n#line 1 "b.h"\nint two;\n#line 3 "a.c"\nint three;\n'


def test_file_included_twice_stands_once() -> None:
    files = {"a.c": '#include "b.h"\n#include "c.h"\n', "b.h": '#include "c.h"\n', "c.h": "int only;\n"}
    assert expand_includes(["a.c"], files.__getitem__).count("int only;") == 1


def test_circle_ends() -> None:
    files = {"a.c": '#include "b.h"\n', "b.h": '#include "a.c"\nint b;\n'}
    assert expand_includes(["a.c"], files.__getitem__).count("int b;") == 1


def test_endless_chain_is_refused() -> None:
    with pytest.raises(KernelError, match="more than 8 deep"):
        expand_includes(["0"], lambda name: f'#include "{int(name) + 1}"\n')


def test_includes_in_angle_brackets_are_left_to_the_compiler() -> None:
    assert "#include <x.h>\n" in expand_includes(["a.c"], lambda _: "#include <x.h>\n")


def test_packaged_programs_expand() -> None:
    text = expand_includes(["cpu.bpf.c"])
    assert '#line 1 "shared/stack.h"' in text
    assert '#include "' not in text


@pytest.mark.parametrize("name", ["missing.c", "shared/missing.h"])
def test_missing_file_is_named(name: str) -> None:
    with pytest.raises(KernelError, match=f"'{name}' is missing"):
        packaged_source(name)


def test_nothing_outside_is_read() -> None:
    with pytest.raises(KernelError, match="outside"):
        packaged_source("../pyproject.toml")
