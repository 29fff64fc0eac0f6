# SPDX-License-Identifier: Apache-2.0
"""How a build of a table ends, and how the jailed child says so (one JSON line on its standard output)."""

import json
from dataclasses import asdict, dataclass
from enum import StrEnum

MAX_REASON_CHARS = 300
MAX_ANSWER_BYTES = 4096


class BuildStatus(StrEnum):
    """The closed set of ends."""

    OK = "ok"
    UNSUPPORTED = "unsupported"
    MALFORMED = "malformed"
    LIMIT = "limit"


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

    def to_json(self) -> bytes:
        """As the child writes it."""
        return json.dumps(asdict(self) | {"reason": self.reason[:MAX_REASON_CHARS]}).encode()


def result_from_json(data: bytes) -> BuildResult | None:
    """What the child said; None when it makes no sense (the child is not trusted)."""
    try:
        fields = json.loads(data[:MAX_ANSWER_BYTES])
        return BuildResult(BuildStatus(fields["status"]), str(fields["reason"])[:MAX_REASON_CHARS], int(fields["symbols"]))
    except (ValueError, KeyError, TypeError):
        return None
