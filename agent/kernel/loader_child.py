# SPDX-License-Identifier: Apache-2.0
"""Compiles and loads BPF programs in a process of its own, hands the descriptors over and exits.

`python -m agent.kernel.loader_child FD`: FD is a unix socket. In: one JSON document, ended by shutdown. Out: four bytes of
length, a JSON document of that length, and with its first byte the descriptors in the order it names. BCC and LLVM need 150 MB
that leave with this process. The only module that imports bcc.
"""

import array
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from agent.errors import AgentError, KernelError
from agent.kernel.headers import HeaderSource, ensure_header_tree, kernel_version

MISSING_BCC = "BCC's Python module is missing: apt-get install python3-bpfcc (the package `bcc` of PyPI is another program)"
_LOG_TAIL_BYTES, _LOG_TAIL_LINES = 4096, 4
_FLAGS = ("-Wno-unused-function", "-Wno-macro-redefined", "-Wno-visibility", "-DBPF_NO_PRESERVE_ACCESS_INDEX")


def main(arguments: list[str]) -> int:
    """Exit status 0 when the descriptors were sent, 1 when an error was."""
    with socket.socket(fileno=int(arguments[0])) as peer:
        try:
            answer, descriptors = _load(json.loads(_receive(peer)))
        except AgentError as error:
            answer, descriptors = {"error": str(error)}, []
        answer["peak_bytes"] = _peak_bytes()
        _send(peer, answer, descriptors)
    return 1 if "error" in answer else 0


def _load(request: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    release = os.uname().release
    version = kernel_version(release)
    tree = ensure_header_tree(Path(request["header_directory"]), HeaderSource(), version)
    os.environ["BCC_KERNEL_SOURCE"] = str(tree)
    os.environ["BCC_LINUX_VERSION_CODE"] = str(version.code)
    bcc = _import_bcc()
    specs = request["specs"]
    defines = [f"-D{name}={value}" for spec in specs for name, value in spec["defines"].items()]
    try:
        module = bcc.BPF(text=request["text"].encode(), cflags=[*_FLAGS, *defines])
    except Exception as error:
        raise KernelError(f"compile {', '.join(spec['source'] for spec in specs)} for Linux {release}: {error}") from error
    programs: dict[str, int] = {}
    maps: dict[str, int] = {}
    refusals: dict[str, str] = {}
    for spec in specs:
        log_from = _log_size()
        try:
            of_spec = _functions(bcc, module, spec, release), _maps(bcc, module, spec)
        except KernelError as error:
            if spec is specs[0]:
                raise
            refusals[spec["source"]] = f"{error}{_log_tail(log_from)}"
            continue
        programs.update(of_spec[0])
        maps.update(of_spec[1])
    return {"programs": list(programs), "maps": list(maps), "refusals": refusals}, [*programs.values(), *maps.values()]


def _functions(bcc: Any, module: Any, spec: dict[str, Any], release: str) -> dict[str, int]:
    loaded = {}
    for name, kind in {**spec["functions"], **spec["optional"]}.items():
        try:
            loaded[name] = module.load_func(name.encode(), getattr(bcc.BPF, kind)).fd
        except Exception as error:
            if name not in spec["optional"]:
                raise KernelError(f"load {name} of {spec['source']} into Linux {release}: {error}") from error
    return loaded


def _maps(bcc: Any, module: Any, spec: dict[str, Any]) -> dict[str, int]:
    made = {}
    for name in spec["maps"]:
        made[name] = bcc.lib.bpf_table_fd(module.module, name.encode())
        if made[name] < 0:
            raise KernelError(f"{spec['source']} has no map {name}")
    return made


def _log_size() -> int:
    """Standard error is a file when the loader started us (loader.py)."""
    return os.fstat(sys.stderr.fileno()).st_size


def _log_tail(log_from: int) -> str:
    """The last words of the verifier on one program."""
    size = _log_size()
    text = os.pread(sys.stderr.fileno(), _LOG_TAIL_BYTES, max(log_from, size - _LOG_TAIL_BYTES)).decode("utf-8", "replace")
    lines = text.strip().splitlines()[-_LOG_TAIL_LINES:]
    return "; the verifier said last: " + " | ".join(lines) if lines else ""


def _import_bcc() -> Any:
    try:
        import bcc
    except ImportError as error:
        raise KernelError(MISSING_BCC) from error
    except OSError as error:
        raise KernelError(f"BCC's library does not load ({error}): apt-get install --reinstall libbpfcc") from error
    if not hasattr(bcc, "BPF"):
        raise KernelError(MISSING_BCC)
    return bcc


def _peak_bytes() -> int:
    """High-water mark of this process's memory; proc_pid_status(5)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def _receive(peer: socket.socket) -> bytes:
    parts = []
    while part := peer.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def _send(peer: socket.socket, answer: dict[str, Any], descriptors: list[int]) -> None:
    text = json.dumps(answer).encode()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    size = len(text).to_bytes(4, "little")
    peer.sendmsg([size], rights)
    peer.sendall(text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
