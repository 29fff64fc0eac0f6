# SPDX-License-Identifier: Apache-2.0
"""Takes out of a kernel package what a guest boots with. Nothing is installed.

The modules are those by which the guest reaches its root: devices on PCI, 9p and overlayfs, with all they depend on.
"""

import lzma
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from tests.kernels.errors import MatrixError

WANTED_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
_MODULE = re.compile(r"(.+)\.ko(\.xz|\.zst)?")
_DEPENDS = re.compile(rb"\0depends=([^\0]*)\0")


@dataclass(frozen=True, slots=True)
class KernelImage:
    """What is in a kernel package."""

    vmlinuz: bytes
    modules: Mapping[str, bytes]
    """Name, with _ for each -, to the module as it is loaded; in the order of loading."""


def read_image(package: Path) -> KernelImage:
    """Read a .deb from beginning to end, once."""
    vmlinuz, builtin = b"", frozenset[str]()
    packed: dict[str, bytes] = {}
    for path, content in _files(package):
        if path.parent.name == "boot" and path.name.startswith("vmlinuz-"):
            vmlinuz = content.read()
        elif path.name == "modules.builtin":
            builtin = builtin_modules(content.read().decode())
        elif _MODULE.fullmatch(path.name) and _is_near(path):
            packed[path.name] = content.read()
    if not vmlinuz:
        raise MatrixError(f"{package.name} holds no kernel")
    return KernelImage(vmlinuz, loading_order(WANTED_MODULES, packed, builtin))


def _files(package: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    command = ["dpkg-deb", "--fsys-tarfile", str(package)]
    try:
        yield from _unpacking(command)
    except tarfile.TarError as error:
        raise MatrixError(f"unpack {package.name}: {error}") from error


def _unpacking(command: list[str]) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as unpacking,
        tarfile.open(fileobj=unpacking.stdout, mode="r|") as archive,
    ):
        for entry in archive:
            content = archive.extractfile(entry) if entry.isfile() else None
            if content is not None:
                yield PurePosixPath(entry.name), content


def builtin_modules(listed: str) -> frozenset[str]:
    """Names in modules.builtin, whose lines are such as kernel/fs/ext4/ext4.ko."""
    return frozenset(_name(PurePosixPath(line.strip()).name) for line in listed.splitlines() if line.strip())


def loading_order(wanted: tuple[str, ...], packed: Mapping[str, bytes], builtin: frozenset[str]) -> dict[str, bytes]:
    """What to load one after another. `packed` is by file name. The package has no modules.dep; each module says what it needs."""
    files = {_name(file): file for file in packed}
    order: dict[str, bytes] = {}

    def add(name: str) -> None:
        if name in order or name in builtin:
            return
        if name not in files:
            raise MatrixError(f"the kernel has no module {name}")
        module = _unpacked(files[name], packed[files[name]])
        found = _DEPENDS.search(module)
        for needed in found[1].decode().split(",") if found and found[1] else ():
            add(needed.replace("-", "_"))
        order[name] = module

    for name in wanted:
        add(name)
    return order


def _name(file: str) -> str:
    found = _MODULE.fullmatch(file)
    return (found[1] if found else file).replace("-", "_")


def _is_near(path: PurePosixPath) -> bool:
    """Directories that hold everything wanted and what that depends on."""
    return bool(re.search(r"/kernel/(fs/(9p|netfs|fscache|overlayfs)|net/9p|drivers/virtio|lib|crypto)/", f"/{path}"))


def _unpacked(file: str, content: bytes) -> bytes:
    if file.endswith(".xz"):
        return lzma.decompress(content)
    if file.endswith(".zst"):
        import zstandard

        return zstandard.ZstdDecompressor().decompressobj().decompress(content)
    return content
