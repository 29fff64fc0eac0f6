# SPDX-License-Identifier: Apache-2.0
"""The package of a file by dpkg's own lists."""

from pathlib import Path

from server.symbols.debian_packages import DebianPackages


def test_package_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "libfoo1:amd64.list").write_bytes(b"/.\n/usr\n/usr/lib/libfoo.so.1\n/usr/lib/libfoo.so.1.2\n")
    (tmp_path / "coreutils.list").write_bytes(b"/.\n/bin\n/bin/ls\n")
    (tmp_path / "libc6:amd64.list").write_bytes(b"/lib/x86_64-linux-gnu/libc.so.6\n")
    (tmp_path / "libc6:amd64.md5sums").write_bytes(b"/opt/none\n")
    packages = DebianPackages(tmp_path)
    paths = [
        b"/usr/lib/libfoo.so.1",
        b"/usr/bin/ls",
        b"/usr/lib/x86_64-linux-gnu/libc.so.6",
        b"/opt/none",
        b"",
        b"libfoo",
        b"/usr/lib/libfoo.so",
    ]
    expected = {paths[0]: "libfoo1-dbgsym", paths[1]: "coreutils-dbgsym", paths[2]: "libc6-dbg"}
    assert packages.debug_packages(paths) == expected
    for file in tmp_path.iterdir():
        file.unlink()
    assert packages.debug_packages(paths) == expected


def test_host_without_dpkg(tmp_path: Path) -> None:
    assert DebianPackages(tmp_path / "missing").debug_packages([b"/bin/ls"]) == {}
