# SPDX-License-Identifier: Apache-2.0
"""Which debug files are asked of debuginfod servers and when, and what is remembered of the answers.

The agents have their time first: what they send may be better, and stays in the house. Only true build ids of files leave this server.
"""

import os
from collections.abc import Callable

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.debuginfod import Answer, FetchLimits
from server.symbols.fetcher import Fetcher, FetchOrder, Told
from server.symbols.history import History, Outcome
from server.symbols.identity import BinaryKey
from server.symbols.ledger import Known, Ledger, NameState
from server.symbols.settings import SymbolSettings
from server.symbols.source_files import Held
from server.symbols.sources import Origin, Source

AGENTS_FIRST_S = 120.0
"""So long the agents have to send a binary before a debuginfod server is asked for its debug file."""
_OUTCOMES = {
    Answer.FOUND: Outcome.OK,
    Answer.MISSING: Outcome.NOT_FOUND,
    Answer.UNUSABLE: Outcome.MALFORMED,
    Answer.LIMIT: Outcome.LIMIT,
    Answer.UNREACHABLE: Outcome.UNREACHABLE,
}
_WITH_FILES = (pb.BINARY_KIND_ELF, pb.BINARY_KIND_KERNEL, pb.BINARY_KIND_MODULE)
Clock = Callable[[], float]


class Fetching:
    """Any thread; nothing here waits for the network. Does nothing at all when no server is configured."""

    def __init__(
        self,
        settings: SymbolSettings,
        ledger: Ledger,
        history: History,
        take: Callable[[Held, Source], object],
        clocks: tuple[Clock, Clock],
    ) -> None:
        """`take` keeps a file that came and makes the tables that it is for; `clocks` are monotonic and unix seconds."""
        self._ledger = ledger
        self._history = history
        self._take = take
        self._clock = clocks[0]
        limits = FetchLimits(size_bytes=settings.upload_max_bytes)
        order = FetchOrder(settings.directory, settings.upstreams, limits, settings.free_min_bytes)
        self._fetcher = Fetcher(order, self._on_told, *clocks) if settings.upstreams else None

    def tend(self, key: BinaryKey, known: Known) -> None:
        """Have the debug file of a binary fetched, when its time has come."""
        if self._fetcher is None or not may_be_fetched(key) or known.state.state == NameState.PENDING:
            return
        if known.state.state != NameState.WANTED or self._clock() - known.met_s > AGENTS_FIRST_S:
            self._fetcher.want(key.build_id)

    def want_now(self, key: BinaryKey) -> None:
        """Have it fetched because a person asks: as soon as the hour since the last request is over."""
        if self._fetcher is not None and may_be_fetched(key):
            self._fetcher.want(key.build_id, is_patient=False)

    def want_common(self, build_id: bytes) -> None:
        """Have a file fetched that debug files here point to."""
        if self._fetcher is not None:
            self._fetcher.want(build_id)

    def is_waiting(self, build_id: bytes) -> bool:
        """Whether it waits for its turn, or is being asked for."""
        return self._fetcher is not None and self._fetcher.is_waiting(build_id)

    def close(self) -> None:
        """End what runs."""
        if self._fetcher is not None:
            self._fetcher.close()

    def _on_told(self, told: Told) -> None:
        """A server has answered: in the fetcher's thread, which goes on while the tables are made."""
        if told.descriptor is None:
            for key in self._ledger.find(lambda key: key.build_id == told.build_id and may_be_fetched(key)):
                attempt = self._history.attempt(Origin.DEBUGINFOD, told.url, _OUTCOMES[told.fetched.answer], told.fetched.reason)
                self._history.note(key, attempt)
            return
        try:
            self._take(Held(pb.BUILD_ID_KIND_GNU, told.build_id), Source(Origin.DEBUGINFOD, told.descriptor, told.url))
        finally:
            os.close(told.descriptor)


def may_be_fetched(key: BinaryKey) -> bool:
    """Only true build ids leave this server: what agents made themselves, and Go's, are nobody else's business (B13)."""
    return key.kind in _WITH_FILES and key.build_id_kind == pb.BUILD_ID_KIND_GNU and not key.flaw()
