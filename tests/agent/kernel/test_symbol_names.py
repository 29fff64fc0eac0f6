# SPDX-License-Identifier: Apache-2.0
"""When the kernel's symbols are read, and what is known meanwhile."""

import logging
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from agent.kernel.modules import KernelSources
from agent.kernel.symbol_names import KernelSymbols
from agent.kernel.symbol_table import table_from_kallsyms

IMAGE, MODULE = 0xFFFFFFFF81000000, 0xFFFFFFFFC0000000
ASKED = np.array([IMAGE + 0x10, MODULE + 0x10], np.uint64)
TEXT = b"ffffffff81000000 t of_image\nffffffffc0000000 t of_module\t[module]\n"
LOADED = "module 16384 0 - Live 0xffffffffc0000000\n"
DEADLINE_S = 60.0


class Host:
    """A clock, /proc/modules, and a child that writes what lies in a file and leaves a mark each time."""

    def __init__(self, directory: Path) -> None:
        self.now_s = 0.0
        self.modules, self.table, self._marks = directory / "modules", directory / "table", directory / "marks"
        self.modules.write_text(LOADED)
        self.table.write_bytes(table_from_kallsyms(TEXT))
        self._marks.touch()
        self._directory = directory

    def symbols(self, program: Sequence[str] = ()) -> KernelSymbols:
        child = program or ("sh", "-c", f"echo >> {self._marks}; cat {self.table}")
        return KernelSymbols(self._directory / "files", KernelSources(modules=self.modules), lambda: self.now_s, child)

    @property
    def readings(self) -> int:
        return len(self._marks.read_bytes())


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def refresh_until_read(symbols: KernelSymbols, host: Host, readings: int) -> None:
    until = time.monotonic() + DEADLINE_S
    while time.monotonic() < until and (host.readings < readings or symbols._child is not None):
        symbols.refresh()
        time.sleep(0.005)
    assert host.readings == readings


def test_this_kernel_is_read(tmp_path: Path) -> None:
    with closing(KernelSymbols(tmp_path)) as symbols:
        symbols.start(DEADLINE_S)
        assert symbols._table is not None
        assert (symbols.tracing[:, 0] < symbols.tracing[:, 1]).all()
        assert not list(tmp_path.iterdir())


def test_names_are_known_from_the_start_and_not_read_again(host: Host) -> None:
    with closing(host.symbols()) as symbols:
        assert symbols.names(ASKED) == [b"", b""]
        symbols.start(DEADLINE_S)
        host.now_s = 1e6
        symbols.refresh()
        assert symbols.names(ASKED) == [b"of_image", b"of_module"]
        assert host.readings == 1


def test_modules_that_came_are_read_behind_and_have_no_names_until_then(host: Host) -> None:
    with closing(host.symbols()) as symbols:
        symbols.start(DEADLINE_S)
        host.table.write_bytes(table_from_kallsyms(TEXT.replace(b"of_module", b"another")))
        host.modules.write_text("another 16384 0 - Live 0xffffffffc0000000\n")
        symbols.refresh()  # too soon after the last reading
        assert symbols.names(ASKED) == [b"of_image", b""]
        assert symbols._child is None
        host.now_s += 31
        refresh_until_read(symbols, host, 2)
        assert symbols.names(ASKED) == [b"of_image", b"another"]


def test_a_start_does_not_wait_for_ever_and_what_comes_later_is_taken(host: Host, tmp_path: Path) -> None:
    go = tmp_path / "go"
    with closing(host.symbols(("sh", "-c", f"until [ -e {go} ]; do sleep 0.01; done; cat {host.table}"))) as symbols:
        symbols.start(0.01)
        symbols.refresh()
        assert symbols.names(ASKED) == [b"", b""]
        go.touch()
        refresh_until_read(symbols, host, 0)
        assert symbols.names(ASKED) == [b"of_image", b"of_module"]


def test_a_child_that_goes_on_ends_with_its_keeper(host: Host) -> None:
    symbols = host.symbols(("sleep", "600"))
    symbols.start(0.01)
    child = symbols._child
    assert child is not None
    symbols.close()
    assert child.returncode == -9


def test_what_fails_is_tried_again_later_and_later_and_told_once(host: Host, caplog: pytest.LogCaptureFixture) -> None:
    host.table.write_bytes(b"no table")
    with closing(host.symbols()) as symbols, caplog.at_level(logging.INFO):
        symbols.start(DEADLINE_S)
        for pause_s, readings in ((30, 2), (60, 3)):
            host.now_s += pause_s - 1
            symbols.refresh()
            assert host.readings == readings - 1
            host.now_s += 2
            refresh_until_read(symbols, host, readings)
        assert symbols.names(ASKED) == [b"", b""]
        host.table.write_bytes(table_from_kallsyms(TEXT))
        host.now_s += 121
        refresh_until_read(symbols, host, 4)
        assert symbols.names(ASKED) == [b"of_image", b"of_module"]
    warning, told = [record.getMessage() for record in caplog.records]
    assert warning.startswith("kernel names not read reason=a table of 8 bytes again_s=30: ")
    assert told == "kernel names read again"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (("sh", "-c", "exit 3"), "exit status 3"),
        (("sh", "-c", "kill -XCPU $$"), "ended by signal 24"),
        (("/nowhere/at/all",), "No such file or directory: /nowhere/at/all"),
    ],
)
def test_why_it_failed_is_told_in_one_line(host: Host, caplog: pytest.LogCaptureFixture, program: Sequence[str], reason: str) -> None:
    with closing(host.symbols(program)) as symbols:
        symbols.start(DEADLINE_S)
        assert symbols.names(ASKED) == [b"", b""]
    (record,) = caplog.records
    assert f"reason={reason} again_s=30" in record.getMessage()
