# SPDX-License-Identifier: Apache-2.0
"""Keeps the names of the kernel's symbols: read once, and again in the background when modules came or went.

python -m agent.kernel.symbol_names writes the table of symbol_table.py to its standard output: a child does it, for it takes 70 MB and
0.4 s of CPU. What stays is its file, which has no name: of its 4 MB those pages are in memory that are looked at.
"""

import gc
import logging
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from agent.kernel.kallsyms import read_kallsyms
from agent.kernel.modules import KernelSources, loaded_modules
from agent.kernel.symbol_table import U64, SymbolTable, table_from_kallsyms

log = logging.getLogger(__name__)

START_TIMEOUT_S = 30.0
"""What a start may wait for it, on a host that is overloaded; afterwards nobody does."""
_CPU_S = 20
"""Of the child. It takes some tenths; by the clock it may take as long as the host is busy."""
_PAUSE_S, _LONGEST_PAUSE_S = 30.0, 3600.0
"""Between two readings; twice as long after each that failed."""
_PROGRAM = (sys.executable, "-P", "-m", "agent.kernel.symbol_names")


class KernelSymbols:
    """For one thread. Until something is read all names are unknown."""

    def __init__(
        self,
        directory: Path,
        sources: KernelSources | None = None,
        now_s: Callable[[], float] = time.monotonic,
        program: Sequence[str] = _PROGRAM,
    ) -> None:
        """The file lies in `directory`, without a name."""
        self._directory = directory
        self._sources = sources or KernelSources()
        self._now_s = now_s
        self._program = program
        self._table: SymbolTable | None = None
        self._modules = self._modules_asked = self._modules_read = loaded_modules(self._sources)
        self._child: subprocess.Popen[bytes] | None = None
        self._file = -1
        self._failures = 0
        self._not_before_s = 0.0

    @property
    def data(self) -> tuple[int, int]:
        """Where data with names lies; both 0 when none is known: not read yet, hidden, or no CONFIG_KALLSYMS_ALL."""
        return (self._table.data_start, self._table.data_end) if self._table is not None else (0, 0)

    @property
    def tracing(self) -> U64:
        """SymbolTable.tracing."""
        return self._table.tracing if self._table is not None else np.zeros((0, 2), np.uint64)

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        """Read for the first time, and wait for it. When that takes longer it goes on behind, and refresh() takes what comes."""
        self._begin()
        if self._child is not None:
            try:
                self._take(self._child.wait(timeout_s))
            except subprocess.TimeoutExpired:
                log.info("kernel names come later waited_s=%d", timeout_s)

    def refresh(self) -> None:
        """Once a window: take what was read, and have it read again when modules have changed. Never waits."""
        self._modules = loaded_modules(self._sources)
        if self._child is not None:
            status = self._child.poll()
            if status is not None:
                self._take(status)
        elif (self._table is None or self._is_stale) and self._now_s() >= self._not_before_s:
            self._begin()

    def names(self, addresses: U64) -> list[bytes]:
        """The symbol that each address lies in; empty for what is not known, or not known yet. As SymbolTable.names."""
        if self._table is None:
            return [b""] * len(addresses)
        return self._table.names(addresses, is_image_only=self._is_stale)

    def close(self) -> None:
        """End a child that still reads."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            self._let_go()

    @property
    def _is_stale(self) -> bool:
        return self._modules != self._modules_read

    def _begin(self) -> None:
        self._modules_asked = self._modules  # Taken before the reading: a module that comes meanwhile has it read once more.
        self._not_before_s = self._now_s() + _PAUSE_S
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self._directory) as file:
                self._file = os.dup(file.fileno())
            null = subprocess.DEVNULL
            self._child = subprocess.Popen(self._program, stdin=null, stdout=self._file, stderr=null)
        except OSError as error:
            self._fail(f"{error.strerror}: {error.filename or self._directory}")

    def _take(self, status: int) -> None:
        try:
            table = SymbolTable(self._file) if status == 0 else None
        except (OSError, ValueError) as error:
            self._fail(str(error))
            return
        if table is None:
            self._fail(f"ended by signal {-status}" if status < 0 else f"exit status {status}")
            return
        self._let_go()
        if self._failures:
            log.info("kernel names read again")
        self._table, self._modules_read, self._failures = table, self._modules_asked, 0

    def _fail(self, reason: str) -> None:
        self._let_go()
        pause_s = min(_PAUSE_S * 2**self._failures, _LONGEST_PAUSE_S)
        self._not_before_s = self._now_s() + pause_s
        if not self._failures:
            log.warning("kernel names not read reason=%s again_s=%d: until then kernel locks are called by their kind", reason, pause_s)
        self._failures += 1

    def _let_go(self) -> None:
        self._child = None
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def main() -> int:
    """The child's side."""
    resource.setrlimit(resource.RLIMIT_CPU, (_CPU_S, _CPU_S + 1))
    gc.disable()  # A third of the time would go into looking for cycles among tuples.
    kallsyms = read_kallsyms(Path("/proc/kallsyms"))
    sys.stdout.buffer.write(table_from_kallsyms(b"" if kallsyms.is_hidden else kallsyms.raw))
    sys.stdout.buffer.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
