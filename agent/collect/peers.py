# SPDX-License-Identifier: Apache-2.0
"""Names of TCP endpoints as they go into row keys: a service that calls thousands has some of them by name, the rest together."""

PEER_PREFIX = b"out "
"""What is connected to; the ports that a service listens on are few."""
OTHER = b"out other"
MOST_PEERS = 200
"""By name at a time, of one service."""
FORGET_WINDOWS = 360
"""A peer that was not met for an hour (windows of 10 s) gives its place to another."""
_MOST_SERVICES = 4096


class PeerNames:
    """Remembers which peers each service has by name, so that one is the same row from window to window."""

    def __init__(self) -> None:
        self._window = 0
        self._met: dict[bytes, dict[bytes, int]] = {}

    def begin_window(self) -> None:
        """Call it once for each window."""
        self._window += 1

    def name(self, service: bytes, endpoint: bytes) -> bytes:
        """Answer `endpoint`, or OTHER when the service has MOST_PEERS others."""
        if not endpoint.startswith(PEER_PREFIX) or endpoint == OTHER:
            return endpoint
        met = self._met.get(service)
        if met is None:
            if len(self._met) >= _MOST_SERVICES:
                del self._met[next(iter(self._met))]
            met = self._met[service] = {}
        if endpoint not in met and len(met) >= MOST_PEERS:
            self._forget(met)
            if len(met) >= MOST_PEERS:
                return OTHER
        met[endpoint] = self._window
        return endpoint

    def _forget(self, met: dict[bytes, int]) -> None:
        for endpoint, window in list(met.items()):
            if window < self._window - FORGET_WINDOWS:
                del met[endpoint]
