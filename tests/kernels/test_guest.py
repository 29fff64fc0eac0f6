# SPDX-License-Identifier: Apache-2.0
"""How a guest is started, and what its console says of its end."""

import re
from pathlib import Path

import pytest

from tests.kernels.errors import MatrixError
from tests.kernels.guest import Boot, check_version, command, status_in
from tests.kernels.image import WANTED_MODULES

INIT = Path(__file__).with_name("init.sh").read_text()


@pytest.mark.parametrize(
    ("console", "status"),
    [
        ("guest: ready after 3.1 s\r\nguest: end 0\r\n[  12.1] reboot: Power down\r\n", 0),
        ("guest: cannot mount the layer\nguest: end 125\n", 125),
        ("guest: ready after 3.1 s\nKernel panic - not syncing\n", None),
        ("echo guest: end 7\n", None),  # Not at the start of a line: somebody speaks of it.
        ("", None),
    ],
)
def test_status_is_what_init_says_last(console: str, status: int | None) -> None:
    assert status_in(console) == status


def test_only_the_way_out_is_shared_for_writing() -> None:
    words = command(Boot(Path("vmlinuz"), Path("initramfs")), Path("/x/out"))
    shares = [word for word in words if word.startswith("local,")]
    assert ["readonly=on" in share for share in shares] == [True, False]
    assert "path=/," in shares[0] and "path=/x/out," in shares[1]


def test_init_and_machine_name_the_same_shares() -> None:
    tags = re.findall(r"mount_tag=(\w+)", " ".join(command(Boot(Path("k"), Path("i")), Path("o"))))
    assert re.findall(r'mount -t 9p -o "[^"]*" (\w+) ', INIT) == tags == ["root", "out"]
    assert {"9p", "overlay"} <= set(WANTED_MODULES)


@pytest.mark.parametrize("told", ["QEMU emulator version 10.0.2 (Debian 1:10.0.2+ds-2)\nCopyright\n", "QEMU emulator version 11.1.0\n"])
def test_new_machine_is_accepted(told: str) -> None:
    check_version(told)


@pytest.mark.parametrize(("told", "said"), [("QEMU emulator version 7.2.22 (Debian)\n", "of version 7.2.22, "), ("", "of no version, ")])
def test_old_machine_is_refused_with_the_remedy(told: str, said: str) -> None:
    with pytest.raises(MatrixError, match=f"{said}needed is 10: `make kernels` installs it"):
        check_version(told)
