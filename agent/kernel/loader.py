# SPDX-License-Identifier: Apache-2.0
"""Has a child process compile and load BPF programs, and receives the descriptors of what it loaded.

Several sources are compiled as one text, so that they share maps and cost one start of the compiler. The first must load; any other
that does not is left out, with the reason.
"""

import array
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agent.errors import KernelError
from agent.kernel.source import ReadSource, expand_includes, packaged_source
from agent.kernel.spec import LoadedProgram, ProgramSpec

TIMEOUT_S = 120
"""A compile takes half a second; under emulation a minute."""
MOST_DESCRIPTORS = 200
ANSWER_LIMIT_BYTES = 1 << 20
LOG_TAIL_LINES = 12
LOG_NOISE = ("WARNING: Linux version for eBPF", "WARNING: Due to this")
"""BCC says so whenever it is told the version of the kernel."""
LOG_TAIL_BYTES = 64 << 10


def load(
    spec: ProgramSpec, header_directory: Path, read: ReadSource = packaged_source, others: Sequence[ProgramSpec] = ()
) -> LoadedProgram:
    """Compile, load and take over `spec` and as many of `others` as can be; the header tree is kept in `header_directory`.

    Raises KernelError with what the compiler or the verifier said last of `spec`. Nothing of theirs reaches our standard error.
    """
    try:
        return _load((spec, *others), header_directory, read)
    except KernelError:
        if not others:
            raise
    # One of them does not compile: a second each to find out which, and the rest runs.
    loaded = _load((spec,), header_directory, read)
    kept: list[ProgramSpec] = []
    refusals: dict[str, str] = {}
    for other in others:
        try:
            larger = _load((spec, *kept, other), header_directory, read)
        except KernelError as error:
            refusals[other.source] = str(error)
        else:
            loaded.close()
            loaded = larger
            kept.append(other)
    return replace(loaded, refusals={**refusals, **loaded.refusals})


def _load(specs: Sequence[ProgramSpec], header_directory: Path, read: ReadSource) -> LoadedProgram:
    request = {
        "text": expand_includes([spec.source for spec in specs], read),
        "specs": [
            {
                "source": spec.source,
                "functions": {name: kind.value for name, kind in spec.functions.items()},
                "optional": {name: kind.value for name, kind in spec.optional.items()},
                "maps": list(spec.maps),
                "defines": dict(spec.defines),
            }
            for spec in specs
        ],
        "header_directory": str(header_directory),
    }
    log_file = os.memfd_create("emberwatch-loader-log")
    try:
        answer, descriptors = _converse(request, log_file)
        return _loaded(answer, descriptors, _log_tail(log_file))
    finally:
        os.close(log_file)


def _converse(request: dict[str, Any], log_file: int) -> tuple[dict[str, Any], list[int]]:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    command = [sys.executable, "-P", "-m", "agent.kernel.loader_child", str(theirs.fileno())]
    with ours:
        with theirs:
            child = _start(command, theirs.fileno(), log_file)
        try:
            ours.settimeout(TIMEOUT_S)
            ours.sendall(json.dumps(request).encode())
            ours.shutdown(socket.SHUT_WR)
            return _receive(ours)
        except TimeoutError as error:
            raise KernelError(f"loading {_sources(request)} took more than {TIMEOUT_S} s") from error
        except OSError as error:
            raise KernelError(f"the loader of {_sources(request)} went away: {error.strerror}") from error
        finally:
            child.kill()  # Does nothing to a child that has sent everything and is leaving.
            child.wait()


def _sources(request: dict[str, Any]) -> str:
    return ", ".join(spec["source"] for spec in request["specs"])


def _start(command: list[str], peer: int, log_file: int) -> "subprocess.Popen[bytes]":
    try:
        return subprocess.Popen(command, pass_fds=[peer], stdin=subprocess.DEVNULL, stdout=log_file, stderr=log_file)
    except OSError as error:
        raise KernelError(f"cannot start the loader {command[0]}: {error.strerror}") from error


def _receive(peer: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The answer and its descriptors; an empty answer when the child died."""
    item_bytes = array.array("i").itemsize
    head, ancillary, _flags, _address = peer.recvmsg(4, socket.CMSG_SPACE(MOST_DESCRIPTORS * item_bytes), socket.MSG_CMSG_CLOEXEC)
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data[: len(data) // item_bytes * item_bytes])
    size = int.from_bytes(head, "little")
    text = b""
    while len(text) < min(size, ANSWER_LIMIT_BYTES):
        part = peer.recv(size - len(text))
        if not part:
            break
        text += part
    return (json.loads(text) if text else {}), descriptors.tolist()


def _loaded(answer: dict[str, Any], descriptors: list[int], log_tail: str) -> LoadedProgram:
    names = [*answer.get("programs", ()), *answer.get("maps", ())]
    if "error" in answer or not answer or len(names) != len(descriptors):
        for descriptor in descriptors:
            os.close(descriptor)
        said = f"; the loader said last:\n{log_tail}" if log_tail else ""
        raise KernelError(f"{answer.get('error', 'the loader ended without an answer')}{said}")
    programs = len(answer["programs"])
    return LoadedProgram(
        programs=dict(zip(names[:programs], descriptors[:programs], strict=True)),
        maps=dict(zip(names[programs:], descriptors[programs:], strict=True)),
        loader_peak_bytes=int(answer["peak_bytes"]),
        refusals=dict(answer["refusals"]),
    )


def _log_tail(log_file: int) -> str:
    size = os.fstat(log_file).st_size
    text = os.pread(log_file, LOG_TAIL_BYTES, max(0, size - LOG_TAIL_BYTES)).decode("utf-8", "replace")
    lines = [line for line in text.strip().splitlines() if not line.startswith(LOG_NOISE)]
    return "\n".join(lines[-LOG_TAIL_LINES:])
