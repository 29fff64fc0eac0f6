# SPDX-License-Identifier: Apache-2.0
"""Thread names as they go into row keys: few enough to add up, raw bytes as the kernel has them."""

import re

MOST_NAMES = 64
"""Distinct names of one service; later ones become OTHER."""
OTHER = b"other"
_MOST_SERVICES = 4096
_DIGITS = re.compile(rb"[0-9]+")


class ThreadNames:
    """Remembers which names each service has used up; what was a name in one window is the same name in the next."""

    def __init__(self) -> None:
        self._by_service: dict[bytes, dict[bytes, bytes]] = {}
        self._distinct: dict[bytes, set[bytes]] = {}

    def name(self, service: bytes, comm: bytes) -> bytes:
        """Answer `comm` with each run of digits as one N, or OTHER when the service has 64 names already. No name stays none."""
        if not comm:
            return comm
        names = self._by_service.get(service)
        if names is None:
            if len(self._by_service) >= _MOST_SERVICES:
                oldest = next(iter(self._by_service))
                del self._by_service[oldest], self._distinct[oldest]
            names = self._by_service[service] = {}
            self._distinct[service] = set()
        name = names.get(comm)
        if name is None:
            name = self._admit(self._distinct[service], _DIGITS.sub(b"N", comm))
            if len(names) < 16 * MOST_NAMES:
                names[comm] = name
        return name

    def _admit(self, distinct: set[bytes], name: bytes) -> bytes:
        if name in distinct:
            return name
        if len(distinct) >= MOST_NAMES:
            return OTHER
        distinct.add(name)
        return name
