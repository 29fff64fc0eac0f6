# SPDX-License-Identifier: Apache-2.0
"""What a person is told of a binary's names: why some are missing, since when, what was tried, and the one line that mends it."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import marks_pb2
from server.store.protocol import BinaryInfo
from server.symbols.build_result import Quality
from server.symbols.debian_packages import DebianPackages
from server.symbols.file_uploads import FileUploads, Piece, Readable
from server.symbols.history import Attempt, Outcome, Record
from server.symbols.identity import key_of
from server.symbols.ledger import NameState, SymbolState
from server.symbols.namer import BEST, Namer, Taken
from server.symbols.sources import Origin

STRIPPED = (Quality.EMPTY, Quality.DYNAMIC)


class Why(StrEnum):
    """Why names are missing, or could be better; the words are part of the API."""

    NOTHING = ""
    READING = "reading"
    WAITING = "waiting"
    """For the upload of an agent."""
    NOT_ASKED = "not-asked"
    """Nothing identifies it."""
    STRIPPED = "stripped"
    NO_DEBUG_DATA = "no-debug-data"
    """Functions have names, lines and inlined calls have not."""
    MISMATCH = "mismatch"
    MALFORMED = "malformed"
    LIMIT = "limit"
    JIT = "jit"
    HIDDEN = "hidden"
    """The kernel hides its addresses from the agent."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """What mends it: words, and a command to be copied; "" where there is none."""

    words: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class DeskFacts:
    """All that is told of one binary."""

    identity: str
    state: SymbolState
    why: Why
    remedy: Remedy
    record: Record
    is_fetch_waiting: bool


class SymbolDesk:
    """Answers for many binaries at once, and takes what people bring. Any thread."""

    def __init__(self, namer: Namer, uploads: FileUploads, packages: DebianPackages) -> None:
        self._namer = namer
        self._uploads = uploads
        self._packages = packages

    def facts(self, binaries: Sequence[BinaryInfo]) -> list[DeskFacts]:
        """What is told of each, in the same order."""
        met = [(binary, self._namer.state(binary), self._namer.record(binary)) for binary in binaries]
        here = [binary.path for binary, state, record in met if state.quality != BEST and is_on_this_host(record)]
        packages = self._packages.debug_packages(here)
        found = []
        for binary, state, record in met:
            why = why_of(binary, state, record)
            remedy = remedy_for_split(binary, record) if why == Why.NO_DEBUG_DATA else None
            remedy = remedy or remedy_for(why, binary, packages if is_on_this_host(record) else {})
            found.append(DeskFacts(key_of(binary).digest, state, why, remedy, record, self._namer.is_fetch_waiting(binary)))
        return found

    def retry(self, identity: str) -> SymbolState | None:
        """Try the sources of a binary again; None when there is no such binary."""
        return self._namer.retry(identity)

    def received(self, token: str) -> int:
        """How far an upload came."""
        return self._uploads.received(token)

    def upload(self, piece: Piece, data: Readable) -> tuple[int, Taken | None]:
        """Take a piece of a file; gives how many bytes are here, and what became of the file when it is whole.

        Raises LimitExceeded, Overloaded, and BadRequest for a file that can name nothing.
        """
        received, descriptor = self._uploads.append(piece, data)
        if descriptor is None:
            return received, None
        try:
            return received, self._namer.take_file(descriptor)
        finally:
            os.close(descriptor)

    def held(self, build_id: bytes) -> Quality:
        """How good what is held for a build id is; EMPTY when there is nothing."""
        return self._namer.held(build_id)

    def pending(self) -> int:
        """How many binaries are looked for or read right now."""
        return self._namer.pending()


def is_on_this_host(record: Record) -> bool:
    """Whether the very file was found on the server's host."""
    return any(attempt.origin == Origin.RUNNING_FILE and attempt.outcome != Outcome.NOT_FOUND for attempt in record.attempts)


def why_of(binary: BinaryInfo, state: SymbolState, record: Record) -> Why:
    """The one reason that leads on."""
    if key_of(binary).flaw():
        return Why.NOT_ASKED
    if state.state == NameState.PENDING:
        return Why.READING
    failed = _failure(record.attempts)
    if state.state == NameState.NAMED and state.quality not in STRIPPED:
        if state.quality == BEST:
            return Why.NOTHING
        return Why.NO_DEBUG_DATA if key_of(binary).counts_from_text else failed or Why.NO_DEBUG_DATA
    if state.state == NameState.WANTED and not failed:
        return Why.WAITING
    return failed or Why.STRIPPED


def _failure(attempts: Sequence[Attempt]) -> Why:
    """The latest of the failures that a person can do something about."""
    kinds = {Outcome.MISMATCH: Why.MISMATCH, Outcome.MALFORMED: Why.MALFORMED, Outcome.LIMIT: Why.LIMIT}
    told = [attempt for attempt in attempts if attempt.origin != Origin.DEBUGINFOD or attempt.outcome == Outcome.MISMATCH]
    return next((kinds[Outcome(attempt.outcome)] for attempt in told if attempt.outcome in kinds), Why.NOTHING)


def remedy_for(why: Why, binary: BinaryInfo, packages: Mapping[bytes, str]) -> Remedy:
    """The line that mends it. Paths come from hosts: they are quoted for a shell, and one that no shell takes is left out."""
    path = _printable(binary.path)
    name = shlex.quote(path.rpartition("/")[2]) if path else "FILE"
    package = packages.get(binary.path)
    if why in (Why.STRIPPED, Why.NO_DEBUG_DATA) and package:
        return Remedy(_PACKAGE_WORDS, f"apt install {package}")
    if why == Why.NO_DEBUG_DATA and key_of(binary).counts_from_text:
        return Remedy(_KERNEL_LINES, f"emberwatch symbols upload {'vmlinux' if binary.kind == pb.BINARY_KIND_KERNEL else 'MODULE.ko'}")
    if binary.kind != pb.BINARY_KIND_ELF:
        return Remedy(_KERNEL_WORDS if why != Why.NOTHING else "")
    words = _WORDS.get(why, "")
    if why == Why.NOT_ASKED:
        return Remedy(words, "-Wl,--build-id")
    if why == Why.LIMIT:
        return Remedy(words, f"objcopy --strip-debug {name} {name}.symbols")
    return Remedy(words, f"emberwatch symbols upload {name}" if words else "")


def remedy_for_split(binary: BinaryInfo, record: Record) -> Remedy | None:
    """For a binary whose debug data the compiler split off; None for others."""
    if not any(attempt.origin == Origin.SPLIT and attempt.outcome == Outcome.NOT_FOUND for attempt in record.attempts):
        return None
    path = _printable(binary.path)
    name = shlex.quote(f"{path.rpartition('/')[2]}.dwp") if path else "FILE.dwp"
    return Remedy("Its inlined calls are in .dwo files. Upload those, or what dwp -e makes of them.", f"emberwatch symbols upload {name}")


def remedy_for_mark(mark: int, service: str) -> tuple[Why, Remedy]:
    """Of code of a service that belongs to no file; the run time is guessed by the service's name."""
    if mark == marks_pb2.MARK_KERNEL_HIDDEN:
        return Why.HIDDEN, Remedy(_HIDDEN_WORDS, "sysctl kernel.kptr_restrict=1")
    command = next((flags for name, flags in _PERF_MAPS.items() if name in service.lower()), _PERF_MAPS["java"])
    return Why.JIT, Remedy(_JIT_WORDS, command)


_PERF_MAPS = {
    "node": "node --perf-basic-prof",
    "python": "python3 -X perf",
    "java": "java -XX:+PreserveFramePointer -XX:+DumpPerfMapAtExit",
}
_JIT_WORDS = (
    "Have the run time write a perf map: node --perf-basic-prof, Python 3.12 -X perf, Java jcmd PID Compiler.perfmap or "
    "-XX:+DumpPerfMapAtExit, with -XX:+PreserveFramePointer for whole stacks."
)
_HIDDEN_WORDS = (
    "The kernel hides its addresses from the agent. Run the agent as root or with CAP_SYSLOG; "
    "where kernel.kptr_restrict is 2, which hides them from everybody:"
)
_KERNEL_WORDS = (
    "Its names come from the agents that run it. They need to be root or to have CAP_SYSLOG, and kernel.kptr_restrict must not be 2."
)
_KERNEL_LINES = (
    "Install the debug package of this kernel (Debian: linux-image-…-dbg) on the server's host, or upload its debug file, "
    "for lines and inlined calls."
)
_PACKAGE_WORDS = "Install its debug package (Debian's debug archive) on the server's host. It is found in ten minutes, or by Try again."
_WORDS = {
    Why.STRIPPED: "Upload the file as it was before it was stripped, or its debug file.",
    Why.NO_DEBUG_DATA: "Upload its debug file for lines and inlined calls.",
    Why.WAITING: "The agents that run it are asked for it. If none has it any more, upload it.",
    Why.MISMATCH: "What was found is of another build. Upload the one with this build id.",
    Why.MALFORMED: "The file cannot be read. Build or copy it anew and upload it.",
    Why.LIMIT: "It is beyond a bound of the server. Upload it with less in it.",
    Why.NOT_ASKED: "Nothing tells it from others. Link it with a build id.",
}


def _printable(path: bytes) -> str:
    """The path when it can be typed; "" otherwise."""
    text = path.decode("utf-8", "replace")
    return text if text.isprintable() and "\ufffd" not in text and len(text) <= 4096 else ""
