# SPDX-License-Identifier: Apache-2.0
"""Which server was asked for which build id and when; survives a restart, so that none is asked twice within the hour.

A line "UNIX-SECONDS TIMES HEX URL" is written before the request goes out: a crash in the middle counts as asked. Who asks by itself
waits longer each time, up to a day; a person who asks waits for the hour alone.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

PAUSE_S = 3600.0
"""At most one request per build id and server in so long, whatever the answer was."""
MOST_PAUSE_S = 86_400.0
MAX_ENTRIES = 200_000
MAX_READ_BYTES = 64 << 20
_KEPT_S = 2 * MOST_PAUSE_S
_SPARE_LINES = 1000


class FetchLog:
    """Requests of the last day or two. Safe for several threads."""

    def __init__(self, path: Path, clock: Callable[[], float]) -> None:
        """`clock` gives unix seconds. What cannot be read of the file is passed over."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._asked: OrderedDict[tuple[bytes, str], tuple[float, int]] = OrderedDict()
        """When last, and how often in a row."""
        self._lines = 0
        self._load()

    def wait_s(self, build_id: bytes, url: str, is_patient: bool = False) -> float:
        """How long until this server may be asked for this build id; 0 for now. Patience doubles with each time it was asked."""
        with self._lock:
            at, times = self._asked.get((build_id, url), (None, 0))
            if at is None:
                return 0.0
            pause = min(MOST_PAUSE_S, PAUSE_S * 2 ** min(times - 1, 10)) if is_patient else PAUSE_S
            return min(pause, max(0.0, at + pause - self._clock()))  # The clock may have been set back.

    def note(self, build_id: bytes, url: str) -> None:
        """Remember that the server is asked now."""
        with self._lock:
            now = self._clock()
            times = self._asked.get((build_id, url), (now, 0))[1] + 1
            self._remember(build_id, url, now, times)
            self._lines += 1
            try:
                if self._lines > 2 * len(self._asked) + _SPARE_LINES:
                    self._rewrite(now)
                else:
                    with self._path.open("a") as file:
                        file.write(_line(build_id, url, now, times))
            except OSError as error:  # Until the end of the process it is remembered all the same.
                log.warning("log of requests not written file=%s reason=%s", self._path.name, error.strerror)

    def _remember(self, build_id: bytes, url: str, at: float, times: int) -> None:
        self._asked[build_id, url] = (at, times)
        self._asked.move_to_end((build_id, url))
        while len(self._asked) > MAX_ENTRIES:
            self._asked.popitem(last=False)

    def _load(self) -> None:
        try:
            with self._path.open("rb") as file:
                data = file.read(MAX_READ_BYTES)
            if data and not data.endswith(b"\n"):  # Cut by a crash: what is written next must not grow onto it.
                with self._path.open("a") as end:
                    end.write("\n")
        except OSError:
            return
        lines = data.decode("ascii", "replace").splitlines()
        now = self._clock()
        for line in lines:
            fields = line.split(" ")
            try:
                at, times, build_id, url = float(fields[0]), int(fields[1]), bytes.fromhex(fields[2]), fields[3]
            except (ValueError, IndexError):
                continue
            if times > 0 and now - at < _KEPT_S:
                self._remember(build_id, url, min(at, now), times)
        self._lines = len(lines)

    def _rewrite(self, now: float) -> None:
        for entry, (at, _) in list(self._asked.items()):
            if now - at >= _KEPT_S:
                del self._asked[entry]
        part = self._path.with_suffix(".part")
        part.write_text("".join(_line(build_id, url, at, times) for (build_id, url), (at, times) in self._asked.items()))
        part.replace(self._path)
        self._lines = len(self._asked)


def _line(build_id: bytes, url: str, at: float, times: int) -> str:
    return f"{at:.3f} {times} {build_id.hex()} {url}\n"
