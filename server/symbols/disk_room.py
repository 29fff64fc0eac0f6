# SPDX-License-Identifier: Apache-2.0
"""Whether a disk has room for what is about to be written to it."""

import os
from pathlib import Path


def refusal_for_room(directory: Path, wanted_bytes: int, free_min_bytes: int) -> str:
    """Why so many bytes may not be written below `directory`; "" when they may.

    Kept free are `free_min_bytes`, or a tenth of the disk if that is smaller.
    """
    disk = os.statvfs(directory)
    reserve = min(free_min_bytes, disk.f_blocks * disk.f_frsize // 10)
    if disk.f_bavail * disk.f_frsize - wanted_bytes < reserve:
        return f"less than {reserve} bytes would stay free on the server's disk"
    return ""
