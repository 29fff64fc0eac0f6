# SPDX-License-Identifier: Apache-2.0
"""How a build of a table ends, and how the jailed child says so (one JSON line on its standard output)."""

import json
from dataclasses import asdict, dataclass
from enum import IntEnum, StrEnum

MAX_REASON_CHARS = 300
MAX_MISSING = 4096
MAX_PATH_BYTES = 4096
MAX_MISSING_BYTES = 1 << 20
MAX_ANSWER_BYTES = 8 << 20


class BuildStatus(StrEnum):
    """The closed set of ends."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    MALFORMED = "malformed"
    LIMIT = "limit"


class Quality(IntEnum):
    """How much the sources of a table know; a better one replaces a poorer one."""

    EMPTY = 0
    DYNAMIC = 1
    """.dynsym, or Go's pclntab."""
    MINI = 2
    """.gnu_debugdata."""
    FULL = 3
    """.symtab, or kallsyms."""
    DWARF = 4
    """Inlined calls and lines as well."""


class Refused(Exception):
    """The source gives no table; ends the build inside the child."""

    def __init__(self, status: BuildStatus, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


@dataclass(frozen=True, slots=True)
class SplitName:
    """What a skeleton says of the file that its entries are in."""

    dwo_id: int
    name: bytes
    directory: bytes
    """Where it was compiled; `name` counts from there unless it is absolute."""


@dataclass(frozen=True, slots=True)
class BuildResult:
    """One end. `reason` is "" for OK."""

    status: BuildStatus
    reason: str = ""
    symbols: int = 0
    quality: Quality = Quality.EMPTY
    debug_reason: str = ""
    """Why a file with debug data gave names only, as "limit: ..."; "" when it gave all, or had none."""
    missing: tuple[SplitName, ...] = ()
    """Units in .dwo files that are not here; of very many only the first."""
    has_lines: bool = False
    """The table has lines, and the inlined calls that are known."""

    def to_json(self) -> bytes:
        """As the child writes it."""
        short = {"reason": self.reason[:MAX_REASON_CHARS], "debug_reason": self.debug_reason[:MAX_REASON_CHARS]}
        return json.dumps(asdict(self) | short | {"missing": _missing_as_text(self.missing)}).encode()


def result_from_json(data: bytes) -> BuildResult | None:
    """What the child said; None when it makes no sense (the child is not trusted)."""
    try:
        fields = json.loads(data[:MAX_ANSWER_BYTES])
        return BuildResult(
            status=BuildStatus(fields["status"]),
            reason=str(fields["reason"])[:MAX_REASON_CHARS],
            symbols=int(fields["symbols"]),
            quality=Quality(fields["quality"]),
            debug_reason=str(fields["debug_reason"])[:MAX_REASON_CHARS],
            missing=tuple(SplitName(int(one), _bytes(name), _bytes(directory)) for one, name, directory in fields["missing"][:MAX_MISSING]),
            has_lines=bool(fields["has_lines"]),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _missing_as_text(missing: tuple[SplitName, ...]) -> list[tuple[int, str, str]]:
    found: list[tuple[int, str, str]] = []
    left = MAX_MISSING_BYTES
    for one in missing[:MAX_MISSING]:
        left -= len(one.name) + len(one.directory)
        if left >= 0:
            found.append((one.dwo_id, one.name.decode("latin-1"), one.directory.decode("latin-1")))
    return found


def _bytes(text: object) -> bytes:
    return str(text).encode("latin-1")[:MAX_PATH_BYTES]
