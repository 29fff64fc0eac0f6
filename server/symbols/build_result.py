# SPDX-License-Identifier: Apache-2.0
"""How a build of a table ends, and how the jailed child says so (one JSON line on its standard output)."""

import json
from dataclasses import asdict, dataclass
from enum import IntEnum, StrEnum

MAX_REASON_CHARS = 300
MAX_ANSWER_BYTES = 4096


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
class BuildResult:
    """One end. `reason` is "" for OK."""

    status: BuildStatus
    reason: str = ""
    symbols: int = 0
    quality: Quality = Quality.EMPTY
    debug_reason: str = ""
    """Why a file with debug data gave names only, as "limit: ..."; "" when it gave all, or had none."""

    def to_json(self) -> bytes:
        """As the child writes it."""
        short = {"reason": self.reason[:MAX_REASON_CHARS], "debug_reason": self.debug_reason[:MAX_REASON_CHARS]}
        return json.dumps(asdict(self) | short).encode()


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
        )
    except (ValueError, KeyError, TypeError):
        return None
