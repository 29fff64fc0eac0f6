# SPDX-License-Identifier: Apache-2.0
"""Remembers of each binary since when it is known and what became of each source that was tried; survives a restart.

One small JSON file a binary, history/ab/cdef….json, written anew with each attempt. A file that cannot be read is as if it were not
there: only the past of one binary is lost. Of too many files the oldest leave.
"""

import contextlib
import json
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from server.symbols.identity import BinaryKey

log = logging.getLogger(__name__)

MAX_RECORDS = 100_000
"""In memory, and on disk; there a tenth more may gather before the oldest leave."""
MAX_ATTEMPTS = 16
MAX_WORDS = 300


class Outcome(StrEnum):
    """What became of a source; the words are part of the API."""

    OK = "ok"
    NOT_FOUND = "not-found"
    MISMATCH = "mismatch"
    """It is there, and is of another binary."""
    MALFORMED = "malformed"
    LIMIT = "limit"
    UNSUPPORTED = "unsupported"
    UNREACHABLE = "unreachable"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One source and the last time it was tried."""

    origin: str
    place: str
    """Which of several of one origin, for example the address of a server; "" where there is only one."""
    outcome: str
    reason: str
    quality: str
    """Of the table that was made with it; "" when none was."""
    at_unix_s: float


@dataclass(frozen=True, slots=True)
class Record:
    """What is remembered of one binary."""

    first_seen_unix_s: float
    attempts: tuple[Attempt, ...] = ()
    """The latest first; one of each (origin, place)."""


class History:
    """Records by identity. Safe for several threads."""

    def __init__(self, directory: Path, clock: Callable[[], float]) -> None:
        """`clock` gives unix seconds."""
        self._root = directory / "history"
        self._root.mkdir(parents=True, exist_ok=True)
        self._clock = clock
        self._lock = threading.Lock()
        self._records: OrderedDict[BinaryKey, Record] = OrderedDict()
        self._files = self._shrink()

    def record(self, key: BinaryKey) -> Record:
        """What is remembered; begins with the first question."""
        with self._lock:
            return self._get(key)

    def note(self, key: BinaryKey, attempt: Attempt) -> None:
        """Remember what became of a source, in place of what became of it before."""
        with self._lock:
            before = self._get(key)
            others = [a for a in before.attempts if (a.origin, a.place) != (attempt.origin, attempt.place)]
            self._put(key, Record(before.first_seen_unix_s, (attempt, *others)[:MAX_ATTEMPTS]))

    def attempt(self, origin: str, place: str, outcome: Outcome, reason: str = "", quality: str = "") -> Attempt:
        """An attempt that was made now."""
        return Attempt(origin, place[:MAX_WORDS], outcome, reason[:MAX_WORDS], quality, self._clock())

    def _get(self, key: BinaryKey) -> Record:
        found = self._records.get(key)
        if found is None:
            found = self._load(key)
            if found is None:
                found = Record(self._clock())
                self._put(key, found)
        self._remember(key, found)
        return found

    def _put(self, key: BinaryKey, record: Record) -> None:
        self._remember(key, record)
        place = self._place(key)
        part = place.with_suffix(".part")
        try:
            is_new = not place.exists()
            place.parent.mkdir(exist_ok=True)
            part.write_text(json.dumps(asdict(record)))
            part.replace(place)
            self._files += is_new
            if self._files > MAX_RECORDS * 11 // 10:
                self._files = self._shrink()
        except OSError as error:  # It is remembered until the end of the process.
            log.warning("history of a binary not written file=%s reason=%s", place.name, error.strerror)

    def _remember(self, key: BinaryKey, record: Record) -> None:
        self._records[key] = record
        self._records.move_to_end(key)
        while len(self._records) > MAX_RECORDS:
            self._records.popitem(last=False)

    def _shrink(self) -> int:
        """Drop the oldest files beyond the bound; gives how many are left."""
        files = sorted((entry.stat().st_mtime, entry.path) for parent in self._root.glob("??") for entry in os.scandir(parent))
        for _, path in files[: max(0, len(files) - MAX_RECORDS)]:
            Path(path).unlink(missing_ok=True)
        return min(len(files), MAX_RECORDS)

    def _load(self, key: BinaryKey) -> Record | None:
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            fields = json.loads(self._place(key).read_text())
            attempts = tuple(_attempt(each) for each in fields["attempts"][:MAX_ATTEMPTS])
            return Record(float(fields["first_seen_unix_s"]), attempts)
        return None

    def _place(self, key: BinaryKey) -> Path:
        return self._root / key.digest[:2] / f"{key.digest[2:]}.json"


def _attempt(fields: dict[str, object]) -> Attempt:
    words = [str(fields[name]) for name in ("origin", "place", "outcome", "reason", "quality")]
    return Attempt(words[0], words[1], words[2], words[3], words[4], float(str(fields["at_unix_s"])))
