# SPDX-License-Identifier: Apache-2.0
"""Programs that talk TCP with known numbers, in a network namespace of their own: `python -m tests.support.tcp_peers SCENARIO`.

A scenario prints one JSON document when it is done and then waits for the end of its input, so that its processes live while they are
looked at. Delay and loss are made by a reflector: a TUN device whose packets are given back with their addresses exchanged, so that what
is sent to 10.9.0.2 arrives at 10.9.0.1 as if it came from there, with the sums of its headers unchanged.
"""

import fcntl
import heapq
import json
import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CONNECTIONS, SENT, ANSWERED = 230, 1009, 30_011
"""Of scenario `talk`: for each connection so many bytes out and back."""
LOCAL, REMOTE = "10.9.0.1", "10.9.0.2"
DELAY_S = 0.03
_SIOCSIFFLAGS, _SIOCSIFADDR, _SIOCSIFNETMASK, _TUNSETIFF = 0x8914, 0x8916, 0x891C, 0x400454CA
_IFF_UP, _IFF_TUN, _IFF_NO_PI = 1, 1, 0x1000
_LINGER_NOT = struct.pack("ii", 1, 0)


@contextmanager
def scenario(name: str) -> Iterator[tuple["subprocess.Popen[str]", Callable[[], dict[str, Any]]]]:
    """The scenario at work in a namespace of its own, and a function that waits for what it says. It begins with a line of input."""
    command = ["unshare", "--net", sys.executable, "-m", "tests.support.tcp_peers", name]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def go() -> dict[str, Any]:
        stdin.write("\n")
        stdin.flush()
        answer: dict[str, Any] = json.loads(stdout.readline())
        return answer

    try:
        assert stdout.readline() == "ready\n"
        yield process, go
    finally:
        process.communicate()


def main(name: str) -> None:
    """Run one scenario."""
    _set_up("lo")
    _SCENARIOS[name]()


def _begin() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def _say(**what: object) -> None:
    print(json.dumps(what), flush=True)


def _as_child(work: Callable[[], None]) -> int:
    """Run `work` in a child that stays until it is killed by the end of its parent's input; its pid, when the work is done."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        work()
        os.write(writer, b".")
        sys.stdin.close()
        while os.read(0, 1):
            pass
        os._exit(0)
    os.close(writer)
    os.read(reader, 1)
    return pid


def _receive(peer: socket.socket, size: int) -> None:
    while size:
        part = peer.recv(size)
        assert part, "the peer went away"
        size -= len(part)


def _serve(listener: socket.socket, connections: int) -> threading.Thread:
    def work() -> None:
        for _ in range(connections):
            peer, _ = listener.accept()
            _receive(peer, SENT)
            peer.sendall(bytes(ANSWERED))
            assert peer.recv(1) == b""
            peer.close()

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def _talk() -> None:
    """A third each by IPv4, IPv4 to a socket of IPv6 (mapped), and IPv6; then connections refused and reset."""
    listener = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    port = listener.getsockname()[1]
    closed = socket.create_server(("127.0.0.1", 0))
    closed_port = closed.getsockname()[1]
    closed.close()
    _begin()
    server = _serve(listener, CONNECTIONS)

    def call() -> None:
        for number in range(CONNECTIONS):
            with socket.create_connection(("::1" if number % 2 else "127.0.0.1", port)) as peer:
                peer.sendall(bytes(SENT))
                _receive(peer, ANSWERED)
        for _ in range(7):
            try:
                socket.create_connection(("127.0.0.1", closed_port))
            except ConnectionRefusedError:
                continue
            raise AssertionError("it was to be refused")

    client_pid = _as_child(call)
    server.join()
    _say(server=os.getpid(), client=client_pid, port=port, closed_port=closed_port)
    sys.stdin.read()


def _reset() -> None:
    """23 connections that the server ends by a reset."""
    listener = socket.create_server(("127.0.0.1", 0))
    _begin()
    for _ in range(23):
        client = socket.create_connection(listener.getsockname())
        peer, _ = listener.accept()
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
        peer.close()
        try:
            client.recv(1)
        except ConnectionResetError:
            client.close()
            continue
        raise AssertionError("it was to be reset")
    _say(pid=os.getpid(), port=listener.getsockname()[1])
    sys.stdin.read()


def _linger() -> None:
    """One connection that stays; a line of input sends 70,001 bytes through it, another 13, a third one closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(listener.getsockname())
    peer, _ = listener.accept()
    _begin()
    for size in (70_001, 13):
        sender = threading.Thread(target=client.sendall, args=(bytes(size),))
        sender.start()
        _receive(peer, size)
        sender.join()
        _say(pid=os.getpid(), port=listener.getsockname()[1])
        sys.stdin.readline()
    client.close()
    peer.recv(1)
    peer.close()
    _say(pid=os.getpid(), port=listener.getsockname()[1])
    sys.stdin.read()


def _overflow() -> None:
    """Nobody accepts: the queue has room for one, eight call."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    _begin()
    callers = [socket.socket() for _ in range(8)]
    for caller in callers:
        caller.setblocking(False)
        caller.connect_ex(listener.getsockname())
    until_s = time.monotonic() + 60
    while not (dropped := _counter("TcpExt", "ListenDrops")) and time.monotonic() < until_s:
        time.sleep(0.05)
    for caller in callers:
        caller.close()  # Those that are not connected stop trying.
    _say(pid=os.getpid(), port=listener.getsockname()[1], dropped=_counter("TcpExt", "ListenDrops"), least=dropped)
    sys.stdin.read()


def _counter(group: str, name: str) -> int:
    """A counter of /proc/net/netstat: a line of names, a line of values."""
    lines = [line.split() for line in Path("/proc/self/net/netstat").read_text().splitlines() if line.startswith(f"{group}:")]
    return int(dict(zip(*lines, strict=True))[name])


def _far() -> None:
    """One connection over a reflector that delays every packet, drops the first SYN and then every 50th segment of data."""
    reflector = Reflector()
    listener = socket.create_server((LOCAL, 0))
    port = listener.getsockname()[1]
    _begin()
    reflector.start()
    from_s = time.monotonic()
    client = socket.create_connection((REMOTE, port))
    connect_s = time.monotonic() - from_s
    peer, _ = listener.accept()
    sender = threading.Thread(target=client.sendall, args=(bytes(1_000_003),))
    sender.start()
    _receive(peer, 1_000_003)
    sender.join()
    client.close()
    peer.recv(1)
    peer.close()
    reflector.wait_until_quiet()
    _say(
        pid=os.getpid(),
        port=port,
        connect_s=connect_s,
        again=reflector.seen_again,
        syns=reflector.syns,
        dropped=reflector.dropped,
        late_s=reflector.late_s,
    )
    sys.stdin.read()


class Reflector:
    """Gives packets of a TUN device back after DELAY_S, with their addresses exchanged."""

    def __init__(self) -> None:
        self._device = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(self._device, _TUNSETIFF, struct.pack("16sH22x", b"reflect", _IFF_TUN | _IFF_NO_PI))
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for request, address in ((_SIOCSIFADDR, LOCAL), (_SIOCSIFNETMASK, "255.255.255.0")):
                fcntl.ioctl(control, request, struct.pack("16sHH4s16x", b"reflect", socket.AF_INET, 0, socket.inet_aton(address)))
        _set_up("reflect")
        self._waiting: list[tuple[float, int, bytes]] = []
        self._ends: dict[tuple[int, int], int] = {}
        self._segments = 0
        self.seen_again = 0
        """Segments with data that had been sent before, at least in part, each way."""
        self.dropped = self.syns = 0
        self.late_s = 0.0
        """The longest that a packet was kept beyond its delay."""
        self._busy_s = time.monotonic()

    def start(self) -> None:
        """Begin in a thread that ends with the program."""
        threading.Thread(target=self._run, daemon=True).start()

    def wait_until_quiet(self) -> None:
        """Until no packet has come for a while."""
        while time.monotonic() - self._busy_s < 0.5:
            time.sleep(0.05)

    def _run(self) -> None:
        number = 0
        while True:
            now_s = time.monotonic()
            while self._waiting and self._waiting[0][0] <= now_s:
                due_s, _, packet = heapq.heappop(self._waiting)
                self.late_s = max(self.late_s, now_s - due_s)
                os.write(self._device, packet)
            wait_s = self._waiting[0][0] - now_s if self._waiting else None
            if not select.select([self._device], [], [], wait_s)[0]:
                continue
            packet = os.read(self._device, 65536)
            if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
                continue
            self._busy_s = time.monotonic()
            if self._is_dropped(packet):
                self.dropped += 1
                continue
            number += 1
            back = packet[:12] + packet[16:20] + packet[12:16] + packet[20:]
            heapq.heappush(self._waiting, (self._busy_s + DELAY_S, number, back))

    def _is_dropped(self, packet: bytes) -> bool:
        header = (packet[0] & 15) * 4
        source, target, sequence = struct.unpack_from("!HHI", packet, header)
        data_bytes = struct.unpack_from("!H", packet, 2)[0] - header - (packet[header + 12] >> 4) * 4
        self.syns += packet[header + 13] & 0x12 == 2
        is_first_syn = packet[header + 13] & 0x12 == 2 and (source, target) not in self._ends
        end = (sequence + data_bytes) & 0xFFFFFFFF
        last = self._ends.get((source, target))
        if last is None:
            self._ends[source, target] = end + 1
            return is_first_syn
        if not data_bytes:
            return False
        if (end - last) & 0xFFFFFFFF >= 1 << 31 or end == last:
            self.seen_again += 1
            return False
        self._ends[source, target] = end
        self._segments += 1
        return self._segments % 50 == 0


def _set_up(interface: str) -> None:
    """Bring an interface up; netdevice(7)."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH22x", interface.encode(), _IFF_UP))


_SCENARIOS = {"talk": _talk, "reset": _reset, "linger": _linger, "overflow": _overflow, "far": _far}

if __name__ == "__main__":
    main(sys.argv[1])
