# SPDX-License-Identifier: Apache-2.0
"""The archive a guest boots with, against the layout of cpio(5)."""

from tests.kernels.initramfs import Entry, archive, initramfs


def test_entry_is_a_header_a_name_and_a_content_padded_to_words() -> None:
    packed = archive(iter([Entry("ab", 0o100644, b"seven77")]))
    header = (
        b"070701"  # magic of newc
        b"00000001"  # inode
        b"000081a4"  # mode 0100644
        b"0000000000000000"  # owner, group
        b"00000001"  # links
        b"00000000"  # time
        b"00000007"  # size
        b"0000000000000000"  # device it lies on
        b"0000000000000000"  # device it stands for
        b"00000003"  # length of the name with its end
        b"00000000"  # check
    )
    assert packed.startswith(header + b"ab\0" + b"\0" * 3 + b"seven77\0")  # 110 + 3 -> 116, 7 -> 8
    assert len(packed) % 4 == 0
    assert b"TRAILER!!!\0" in packed


def test_modules_are_named_in_the_order_of_loading() -> None:
    packed = initramfs(b"busybox", b"init", {"z": b"first", "a": b"second"})
    assert packed.index(b"modules/00-z.ko\0") < packed.index(b"modules/01-a.ko\0")
    assert packed.index(b"bin\0") < packed.index(b"bin/busybox\0")
