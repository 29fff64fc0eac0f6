# SPDX-License-Identifier: Apache-2.0
"""Modules are loaded after what they depend on, and a package that holds no kernel is told by name."""

import lzma
from pathlib import Path

import pytest

from tests.kernels.errors import MatrixError
from tests.kernels.image import builtin_modules, loading_order, read_image


def module(depends: str, body: bytes = b"code") -> bytes:
    """As far as it is read: the strings of .modinfo."""
    return b"\x7fELF\0license=GPL\0depends=" + depends.encode() + b"\0" + body


def test_what_a_module_depends_on_comes_first_and_once() -> None:
    packed = {
        "9p.ko": module("9pnet,netfs"),
        "9pnet.ko": module(""),
        "netfs.ko": module(""),
        "9pnet_virtio.ko": module("9pnet,virtio-ring"),
        "virtio-ring.ko": module(""),
        "unused.ko": module(""),
    }
    assert list(loading_order(("9pnet_virtio", "9p"), packed, frozenset())) == ["9pnet", "virtio_ring", "9pnet_virtio", "netfs", "9p"]


def test_what_is_built_in_is_not_loaded() -> None:
    assert loading_order(("virtio_pci",), {}, builtin_modules("kernel/drivers/virtio/virtio_pci.ko\nkernel/lib/crc-x.ko\n")) == {}
    assert builtin_modules("kernel/lib/crc-x.ko\n") == {"crc_x"}


def test_packed_module_is_unpacked() -> None:
    assert loading_order(("a",), {"a.ko.xz": lzma.compress(module(""))}, frozenset()) == {"a": module("")}


def test_missing_module_is_named() -> None:
    with pytest.raises(MatrixError, match="the kernel has no module netfs"):
        loading_order(("9p",), {"9p.ko": module("netfs")}, frozenset())


def test_file_that_is_no_package_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "linux-image.deb"
    broken.write_bytes(b"!<arch>\ncut")
    with pytest.raises(MatrixError, match=r"linux-image\.deb"):
        read_image(broken)
