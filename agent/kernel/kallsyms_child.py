# SPDX-License-Identifier: Apache-2.0
"""Writes the symbols of the kernel or of a module as an upload, in a process of its own: the 100,000 names it sorts leave with it.

python -m agent.kernel.kallsyms_child OUT_FD KIND BUILD_ID_KIND BUILD_ID_HEX CONTENT_HASH_HEX
"""

import os
import subprocess
import sys
from typing import BinaryIO

from agent.kernel.layout import kallsyms_upload
from agent.records.binary import Binary, BinaryId

_TIMEOUT_S = 60.0


def write_kallsyms(binary: Binary, target: BinaryIO) -> bool:
    """Write the upload of `binary` to `target` by a child; False when it is not loaded any more, or the child failed."""
    identity = [str(int(binary.id.build_id_kind)), binary.id.build_id.hex(), binary.id.content_hash.hex()]
    command = [sys.executable, "-P", "-m", "agent.kernel.kallsyms_child", str(target.fileno()), str(int(binary.kind)), *identity]
    try:
        return subprocess.run(command, pass_fds=[target.fileno()], timeout=_TIMEOUT_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main(arguments: list[str]) -> int:
    """The child's side; 1 when there is no such binary."""
    target, kind, id_kind = (int(number) for number in arguments[:3])
    identity = BinaryId(id_kind, *(bytes.fromhex(text) for text in arguments[3:5]))  # type: ignore[arg-type]
    upload = kallsyms_upload(Binary(kind, identity, b"", (), 0))  # type: ignore[arg-type]
    if upload is None:
        return 1
    with os.fdopen(target, "wb") as file:
        file.write(upload)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
