# SPDX-License-Identifier: Apache-2.0
"""Tests of what is read of modules; the rest is in test_layout.py."""

from pathlib import Path

from agent.kernel.modules import ChangeSign, KernelSources, live_modules, module_build_id
from emberwatch.v1 import batch_pb2 as pb


def test_a_module_name_is_no_path(tmp_path: Path) -> None:
    files = KernelSources(sys_module=tmp_path)
    for name in (b"../../etc", b"..", b"", b"a/b"):
        assert module_build_id(files, name) == (pb.BUILD_ID_KIND_NONE, b"")


def test_only_live_modules_count() -> None:
    sign = ChangeSign((b"a 7 Live 0x0", b"b 7 Loading 0x0", b"c 7 Unloading 0x0"), None)
    assert live_modules(sign) == frozenset({b"a"})
    assert live_modules(ChangeSign((), None)) is None
