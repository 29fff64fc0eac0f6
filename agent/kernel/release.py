# SPDX-License-Identifier: Apache-2.0
"""Which upstream release a kernel is made from: distributions hide the last number, and fixes go by it.

Debian's 6.1.0-57-amd64 is 6.1.192, which it says in the build text of uname(2); Ubuntu's 5.15.0-91-generic is 5.15.131, which it
says in /proc/version_signature.
"""

import os
import re
from pathlib import Path

SIGNATURE = Path("/proc/version_signature")
_DEBIAN = re.compile(r"\bDebian (\d+\.\d+\.\d+)")
_UBUNTU = re.compile(r"^Ubuntu \S+ (\d+\.\d+\.\d+)")


def running_release() -> str:
    """The upstream release of this kernel; the release it calls itself when it does not tell."""
    system = os.uname()
    try:
        signature = SIGNATURE.read_text()
    except OSError:
        signature = ""
    return upstream_release(system.release, system.version, signature)


def upstream_release(release: str, build: str, signature: str = "") -> str:
    """`release` and `build` as uname(2) gives them. What is not of the same series is not believed."""
    series = re.match(r"\d+\.\d+\.", release)
    for found in (_DEBIAN.search(build), _UBUNTU.search(signature)):
        if found and series and found[1].startswith(series[0]):
            return found[1]
    return release
