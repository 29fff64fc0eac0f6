# SPDX-License-Identifier: Apache-2.0
"""Tests of the vDSO."""

from pathlib import Path

import pytest

from agent.process.vdso import binary_from_image, read_image
from emberwatch.v1 import batch_pb2 as pb


def test_our_own_vdso_has_a_build_id() -> None:
    image = read_image()
    if not image:
        pytest.skip("no vDSO is mapped, or /proc/self/mem cannot be read")
    binary = binary_from_image(image)
    assert binary is not None
    assert (binary.kind, binary.path, binary.size_bytes) == (pb.BINARY_KIND_VDSO, b"[vdso]", len(image))
    assert binary.id.build_id_kind == pb.BUILD_ID_KIND_GNU
    assert binary.segments


def test_without_one_there_is_no_binary(tmp_path: Path) -> None:
    assert read_image(tmp_path) == b""
    assert binary_from_image(b"") is None
