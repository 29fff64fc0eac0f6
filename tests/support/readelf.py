# SPDX-License-Identifier: Apache-2.0
"""Unwind rules as binutils reads them: an opinion that shares no code with ours."""

import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FDE = re.compile(r"FDE cie=\S+ pc=([0-9a-f]+)\.\.([0-9a-f]+)")
_ROW = re.compile(r"([0-9a-f]{16}) (.*)")
_OTHER_REGISTER = re.compile(r"r(\d+) \(\w+\)")


@dataclass(frozen=True, slots=True)
class ReadelfRow:
    """One line of --debug-dump=frames-interp."""

    address: int
    cfa: str
    """"rsp+8", "exp" ..."""
    bp: str
    """"u" undefined, "s" the same, "c-16", "exp" ..."""
    ra: str


def readelf_rows(path: Path) -> Iterator[ReadelfRow]:
    """Rows of all FDEs in .eh_frame, without those that lie behind the end of their FDE."""
    command = ["readelf", "--debug-dump=frames-interp", str(path)]
    # Its status is 1 already when it misses a separate debug file.
    text = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace").stdout
    columns: list[str] = []
    end = 0
    for line in text.splitlines():
        if found := _FDE.search(line):
            end = int(found[2], 16)
        elif " CIE " in line:
            end = 0
        elif line.strip().startswith("LOC"):
            columns = line.split()[2:]
        elif (row := _ROW.match(line)) and int(row[1], 16) < end:
            cfa, *values = _OTHER_REGISTER.sub(r"r\1", row[2]).split()
            held = dict(zip(columns, values, strict=True))
            yield ReadelfRow(int(row[1], 16), cfa, held.get("rbp", "u"), held.get("ra", "c-8"))
