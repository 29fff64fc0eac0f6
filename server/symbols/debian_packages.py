# SPDX-License-Identifier: Apache-2.0
"""Which Debian package a file on this host came with, for the hint how to get its debug data: dpkg's lists of files, read once."""

import logging
import threading
from collections.abc import Sequence
from pathlib import Path

log = logging.getLogger(__name__)

DPKG_INFO = Path("/var/lib/dpkg/info")
MAX_KNOWN = 10_000
_NAMED_OTHERWISE = {"libc6": "libc6-dbg", "libc-bin": "libc6-dbg"}
"""Packages whose debug data Debian keeps beside the others, in a package of an older kind."""


class DebianPackages:
    """Packages by path. Safe for several threads."""

    def __init__(self, info: Path = DPKG_INFO) -> None:
        """`info` is the directory with NAME.list and NAME:ARCHITECTURE.list."""
        self._info = info
        self._lock = threading.Lock()
        self._known: dict[bytes, str] = {}

    def debug_packages(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        """The package with the debug data of each file that dpkg knows."""
        with self._lock:
            fresh = {path for path in paths if path.startswith(b"/") and path not in self._known}
            if fresh:
                if len(self._known) + len(fresh) > MAX_KNOWN:
                    self._known.clear()
                self._look(fresh)
            return {path: self._known[path] for path in paths if self._known.get(path)}

    def _look(self, paths: set[bytes]) -> None:
        self._known.update(dict.fromkeys(paths, ""))
        # Before /lib and /usr/lib became one, packages listed what is now /usr/lib/x as /lib/x.
        listed = {path: path for path in paths} | {path.removeprefix(b"/usr"): path for path in paths if path.startswith(b"/usr/")}
        for file in self._info.glob("*.list"):
            try:
                found = listed.keys() & set(file.read_bytes().split(b"\n"))
            except OSError:  # One package fewer that can be named.
                continue
            name = file.name.removesuffix(".list").partition(":")[0]
            for path in found:
                self._known[listed[path]] = _NAMED_OTHERWISE.get(name, f"{name}-dbgsym")
