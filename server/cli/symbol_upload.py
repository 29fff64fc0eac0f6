# SPDX-License-Identifier: Apache-2.0
"""`emberwatch symbols upload`: finds files that can name something, asks what the server has, sends the rest in pieces.

A file is sent once for its build id, the one that tells most first; what the server has as good is left alone. Files with split debug data
have no build id to ask by: they are sent each time. An upload that broke off goes on where it stopped, also when the command is started
again: its token is a hash of the file.
"""

import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from server.cli.ask import Api
from server.errors import BadRequest, Overloaded, ServerError
from server.symbols.build_result import Quality, Refused
from server.symbols.elf_probe import probe
from server.symbols.source_files import quality_of, worth_of
from server.symbols.split_ids import split_ids

PIECE_BYTES = 8 << 20
ATTEMPTS = 5
PAUSE_S = 2.0
Told = Callable[[str, float], None]
"""Takes what is done and which share of it."""


class Line(Protocol):
    """Takes one line of text for the user."""

    def __call__(self, text: str, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file that can name something."""

    path: Path
    build_id: str
    """In hex; "" for a file without one."""
    worth: int
    quality: Quality


@dataclass(frozen=True, slots=True)
class Tally:
    """What became of the files."""

    sent: int = 0
    known: int = 0
    refused: int = 0


class Uploader:
    """Sends files to one server."""

    def __init__(self, api: Api, say: Line, told: Told, sleep: Callable[[float], None] = time.sleep) -> None:
        self._api = api
        self._say = say
        self._told = told
        self._sleep = sleep

    def send_all(self, paths: Sequence[Path]) -> Tally:
        """Send what the server does not have. Raises ServerError when it cannot be reached, or for a file that is none."""
        found = [candidate for path in paths for candidate in candidates(path)]
        sent = known = refused = 0
        for candidate in sorted(found, key=lambda each: (-each.worth, each.path)):
            if candidate.build_id and self._held(candidate.build_id) >= candidate.quality:
                known += 1
                self._say(f"known    {candidate.build_id:.16}  {candidate.path}")
                continue
            try:
                answer = self._send(candidate)
            except BadRequest as error:
                refused += 1
                self._say(f"refused  {candidate.build_id:.16}  {candidate.path}: {error}")
                continue
            sent += 1
            runs = "nothing runs it yet" if not answer["binaries"] else "names what runs"
            self._say(f"sent     {candidate.build_id:.16}  {candidate.path} ({runs})")
        return Tally(sent, known, refused)

    def _held(self, build_id: str) -> Quality:
        word = str(self._api.get_json("symbols/files", build_id=build_id)["held"]).upper()
        return Quality[word] if word in Quality.__members__ else Quality.EMPTY

    def _send(self, candidate: Candidate) -> dict[str, int]:
        with candidate.path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            place = f"symbols/files/{hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()}"
            received = int(self._api.get_json(place)["received"])
            while True:
                self._told(f"sending {candidate.path.name}", received / size)
                data = os.pread(file.fileno(), PIECE_BYTES, received)
                if not data:
                    raise BadRequest("it became shorter while it was sent")
                answer = self._put(place, data, f"bytes {received}-{received + len(data) - 1}/{size}")
                if answer["done"]:
                    return answer
                received = int(answer["received"])

    def _put(self, place: str, data: bytes, content_range: str) -> dict[str, int]:
        """Send a piece; again after a while when the server is busy or the line breaks."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._api.put(place, data, content_range)
            except BadRequest:
                raise
            except ServerError as error:
                if attempt == ATTEMPTS:
                    words = f"{error}; run the command again: what is there already is not sent twice"
                    raise type(error)(words) if isinstance(error, Overloaded) else ServerError(words) from error
                self._sleep(PAUSE_S * attempt)
        raise AssertionError("the last attempt returns or raises")


def candidates(path: Path) -> Iterator[Candidate]:
    """The files below a directory that can name something, or the one file. Raises BadRequest for a file that cannot."""
    if path.is_dir():
        for directory, _, names in os.walk(path):
            for name in sorted(names):
                file = Path(directory, name)
                if file.is_file() and not file.is_symlink():
                    candidate = _candidate(file)
                    if not isinstance(candidate, str):
                        yield candidate
        return
    candidate = _candidate(path)
    if isinstance(candidate, str):
        raise BadRequest(f"{path} cannot be sent: {candidate}")
    yield candidate


def _candidate(path: Path) -> Candidate | str:
    """The file, or why it is none."""
    try:
        with path.open("rb") as file:
            seen, split = probe(file.fileno()), split_ids(file.fileno())
    except OSError as error:
        return error.strerror or str(error)
    except Refused as refused:
        return refused.reason
    if split.size:  # After the program that lacks it, so that the server knows whose it is.
        return Candidate(path, "", 0, Quality.EMPTY)
    build_id = (seen.build_ids.gnu or seen.build_ids.go).hex()
    if not worth_of(seen):
        return "it holds neither symbols nor debug data"
    if not build_id and not seen.has_code:
        return "it has neither a build id nor code: nothing tells which binary it belongs to"
    return Candidate(path, seen.build_ids.gnu.hex(), worth_of(seen), quality_of(worth_of(seen)))
