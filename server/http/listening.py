# SPDX-License-Identifier: Apache-2.0
"""Takes an address to listen on. A name may stand for several (localhost for IPv4 and IPv6): all of them are taken, with one port."""

import socket
from contextlib import ExitStack


def bound_sockets(address: str) -> list[socket.socket]:
    """Give listening sockets for HOST:PORT, closed at an exec. Raises OSError in the system's words; has then taken nothing."""
    host, _, port_text = address.rpartition(":")
    port = int(port_text)
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    with ExitStack() as undo:
        for family, kind, protocol, _, place in found:
            taken = undo.enter_context(socket.socket(family, kind, protocol))
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # What only lingers is not taken.
            if family == socket.AF_INET6:
                taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            taken.bind((place[0], port, *place[2:]))
            taken.listen(1024)
            port = port or taken.getsockname()[1]
            sockets.append(taken)
        undo.pop_all()
    return sockets


def refusal_to_listen(address: str) -> str:
    """Say in the system's words why HOST:PORT cannot be listened on; "" when it can be now."""
    try:
        for taken in bound_sockets(address):
            taken.close()
    except OSError as error:
        return error.strerror or str(error)
    return ""
