# SPDX-License-Identifier: Apache-2.0
"""Where separate debug files are found, and by what they prove to be meant."""

import os
import zlib
from pathlib import Path

import pytest

from emberwatch.v1 import batch_pb2 as pb
from server.symbols import debug_links
from server.symbols.debug_links import crc_of, open_by_alt_link, open_by_build_id, open_by_debug_link, probe_or_none
from server.symbols.elf_probe import AltLink, DebugLink
from tests.server.symbols.programs import compile_program

BUILD_ID = bytes.fromhex("1234567890abcdef")


@pytest.fixture
def common(tmp_path: Path) -> Path:
    """Stands for what dwz makes: an ELF file with the build id that debug files point to."""
    return compile_program("int main(void) { return 7; }", tmp_path / "common", f"-Wl,--build-id=0x{BUILD_ID.hex()}")


def is_open(descriptor: int | None) -> bool:
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None


def placed(file: Path, root: Path, name: str) -> Path:
    place = root / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(file.read_bytes())
    return place


def test_by_build_id(tmp_path: Path, common: Path) -> None:
    root = tmp_path / "root"
    placed(common, root, ".build-id/12/34567890abcdef.debug")
    assert is_open(open_by_build_id(pb.BUILD_ID_KIND_GNU, BUILD_ID, [tmp_path / "missing", root]))
    assert not is_open(open_by_build_id(pb.BUILD_ID_KIND_GO, BUILD_ID, [root]))
    assert not is_open(open_by_build_id(pb.BUILD_ID_KIND_GNU, b"\x12", [root]))


def test_link_that_leads_out_of_the_root_is_not_followed(tmp_path: Path, common: Path) -> None:
    place = tmp_path / "root/.build-id/12/34567890abcdef.debug"
    place.parent.mkdir(parents=True)
    place.symlink_to(common)
    assert not is_open(open_by_build_id(pb.BUILD_ID_KIND_GNU, BUILD_ID, [tmp_path / "root"]))


@pytest.mark.parametrize(
    ("place", "path"),
    [
        (".build-id/12/34567890abcdef.debug", b"/elsewhere/x.debug"),
        (".dwz/x86_64-linux-gnu/x.debug", b"/usr/lib/debug/.dwz/x86_64-linux-gnu/x.debug"),
        (".dwz/x.debug", b"../../../.dwz/x.debug"),
    ],
)
def test_common_file_by_build_id_or_below_dwz(tmp_path: Path, common: Path, place: str, path: bytes) -> None:
    """C21: Debian writes an absolute path, Fedora a relative one."""
    root = tmp_path / "root"
    file = placed(common, root, place)
    assert is_open(open_by_alt_link(AltLink(path, BUILD_ID), [root]))
    assert not is_open(open_by_alt_link(AltLink(path, BUILD_ID[::-1]), [root]))
    file.write_bytes(b"not an ELF file")
    assert not is_open(open_by_alt_link(AltLink(path, BUILD_ID), [root]))


def test_common_file_outside_of_the_roots_is_not_opened(tmp_path: Path, common: Path) -> None:
    (tmp_path / "root/.dwz").mkdir(parents=True)
    for path in (os.fsencode(common), b"/x/.dwz/../../common", b"/x/.dwz/" + os.fsencode(common)):
        assert not is_open(open_by_alt_link(AltLink(path, BUILD_ID), [tmp_path / "root"]))


def test_debug_link_by_crc(tmp_path: Path, common: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = tmp_path / "root"
    placed(common, root, "opt/app/app.debug")
    crc = zlib.crc32(common.read_bytes())
    binary = os.open(common, os.O_RDONLY)
    assert crc_of(binary) == crc
    assert is_open(open_by_debug_link(binary, DebugLink(b"app.debug", crc), b"/opt/app/app", [root]))
    assert not is_open(open_by_debug_link(binary, DebugLink(b"app.debug", crc ^ 1), b"/opt/app/app", [root]))
    assert not is_open(open_by_debug_link(binary, DebugLink(b"app.debug", crc), b"/opt/other/app", [root]))
    assert not is_open(open_by_debug_link(binary, DebugLink(b"app.debug", crc), b"[vdso]", [root]))
    monkeypatch.setattr(debug_links, "MAX_CHECKED_BYTES", 100)
    assert not is_open(open_by_debug_link(binary, DebugLink(b"app.debug", crc), b"/opt/app/app", [root]))
    os.close(binary)


def test_what_is_no_elf_file_is_none() -> None:
    descriptor = os.memfd_create("x")
    os.write(descriptor, b"<html>")
    assert probe_or_none(descriptor) is None
    os.close(descriptor)
