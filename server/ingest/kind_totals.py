# SPDX-License-Identifier: Apache-2.0
"""Totals of some kinds by service since the server's start, for /metrics: exact, because every stored push is added once.

Bounded: columns that add up of four kinds, and so many services; the others together are OTHER.
"""

import threading
from collections.abc import Mapping

from server.store.push import DecodedPush, ValueMerge

KINDS = ("lock", "syscall", "tcp", "time")
MOST_SERVICES = 500
MOST_COLUMNS = 64
"""Of one kind; its first ones count."""
OTHER = "__other__"

Totals = Mapping[tuple[str, str], Mapping[str, int]]
"""By kind and column: totals by service."""


class KindTotals:
    """Thread safe."""

    def __init__(self) -> None:
        self._totals: dict[tuple[str, str], dict[str, int]] = {}
        self._columns: dict[str, set[str]] = {}
        self._services: set[str] = set()
        self._lock = threading.Lock()

    def add(self, push: DecodedPush) -> None:
        """Take a push that was stored into account."""
        sums = [
            (series.kind, column.name, series.service, int(column.values.sum(dtype="u8")))
            for series in push.series
            if series.kind in KINDS
            for column in series.columns
            if column.merge is ValueMerge.SUM and column.values is not None
        ]
        with self._lock:
            for kind, column_name, service, value in sums:
                self._add(kind, column_name, service, value)

    def totals(self) -> Totals:
        """What was added so far."""
        with self._lock:
            return {key: dict(by_service) for key, by_service in self._totals.items()}

    def _add(self, kind: str, column: str, service: str, value: int) -> None:
        columns = self._columns.setdefault(kind, set())
        if column not in columns and len(columns) >= MOST_COLUMNS:
            return
        columns.add(column)
        if service not in self._services and len(self._services) >= MOST_SERVICES:
            service = OTHER
        else:
            self._services.add(service)
        by_service = self._totals.setdefault((kind, column), {})
        by_service[service] = by_service.get(service, 0) + value
