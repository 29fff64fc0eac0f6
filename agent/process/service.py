# SPDX-License-Identifier: Apache-2.0
"""Names the service of a process and its version.

Service, first that is known: EMBERWATCH_SERVICE, OTEL_SERVICE_NAME, service.name in OTEL_RESOURCE_ATTRIBUTES, container, systemd unit,
base name of the exe, name of the thread. Version: service.version in OTEL_RESOURCE_ATTRIBUTES, else 12 hex digits of the main binary's
build id (of its content hash where it has none), unless the main binary is an interpreter: its build is not the service's.
Of the environment only the three variables named here are looked at, and none is kept.
"""

import re
from urllib.parse import unquote_to_bytes

from agent.process.cgroup import MAX_CGROUP_BYTES, parse_cgroup
from agent.process.directory import ProcessDirectory
from agent.records.binary import Binary
from emberwatch.v1 import batch_pb2 as pb

MAX_NAME_BYTES = 256
_MAX_ENVIRONMENT_BYTES = 256 << 10
_VERSION_CHARS = 12
_OURS, _OTEL_NAME, _OTEL_ATTRIBUTES = b"EMBERWATCH_SERVICE", b"OTEL_SERVICE_NAME", b"OTEL_RESOURCE_ATTRIBUTES"
_DELETED = b" (deleted)"
_INTERPRETER = re.compile(
    rb"(?:python|pypy|ruby|perl|php|lua|luajit|node|nodejs|java|tclsh|wish|guile|erl|mono|gawk|mawk|qemu-[\w-]+)[-.\d]*(?:-?(?:fpm|cgi)[.\d]*|t)?"
    rb"|beam(?:\.smp)?|deno|bun|dotnet|julia|R|awk|busybox|(?:ba|da|z|k|mk|c|tc|fi|a)?sh"
)


def environment_wanted(raw: bytes) -> dict[bytes, bytes]:
    """Those of the three variables that /proc/PID/environ holds; a variable set twice counts with its first value, as in getenv(3)."""
    wanted: dict[bytes, bytes] = {}
    for name in (_OURS, _OTEL_NAME, _OTEL_ATTRIBUTES):
        marked = b"\0" + name + b"="
        at = (b"\0" + raw).find(marked)
        if at >= 0:
            wanted[name] = raw[at + len(marked) - 1 :].partition(b"\0")[0]
    return wanted


def resource_attribute(attributes: bytes, name: bytes) -> bytes:
    """Value of one of `key=value,key=value`, percent-decoded (OpenTelemetry's rule for OTEL_RESOURCE_ATTRIBUTES); b"" when absent."""
    for pair in attributes.split(b","):
        key, _, value = pair.partition(b"=")
        if unquote_to_bytes(key.strip()) == name:
            return unquote_to_bytes(value.strip())
    return b""


class ServiceNames:
    """What was read of a process once, at first sight, to name it."""

    def __init__(self, directory: ProcessDirectory, comm: bytes) -> None:
        wanted = environment_wanted(directory.read(b"environ", _MAX_ENVIRONMENT_BYTES) or b"")
        attributes = wanted.get(_OTEL_ATTRIBUTES, b"")
        self._exe_name = exe_name(directory)
        self._version = resource_attribute(attributes, b"service.version")
        named = wanted.get(_OURS) or wanted.get(_OTEL_NAME) or resource_attribute(attributes, b"service.name")
        self.service = cut(named or self._by_surroundings(directory) or self._exe_name or comm)

    def version(self, main_binary: Binary | None) -> bytes:
        """The version, given the binary behind the exe."""
        if self._version or main_binary is None or is_interpreter(self._exe_name):
            return cut(self._version)
        identity = main_binary.id
        if identity.build_id_kind == pb.BUILD_ID_KIND_GO:
            # Go's id is text; its last part stands for the content.
            return identity.build_id.rpartition(b"/")[2][:_VERSION_CHARS]
        return (identity.build_id or identity.content_hash).hex().encode()[:_VERSION_CHARS]

    @staticmethod
    def _by_surroundings(directory: ProcessDirectory) -> bytes:
        names = parse_cgroup(directory.read(b"cgroup", MAX_CGROUP_BYTES) or b"")
        return names.container or names.unit


def exe_name(directory: ProcessDirectory) -> bytes:
    """Base name of the exe without " (deleted)" if its file has no name any more; b"" if unknown, or memory with a drawn name (memfd)."""
    target = directory.link(b"exe")
    if target.startswith(b"/memfd:"):
        return b""
    if target.endswith(_DELETED):
        found = directory.follow(b"exe")
        if found is None or found.st_nlink == 0:
            target = target[: -len(_DELETED)]
    return target.rpartition(b"/")[2]


def is_interpreter(name: bytes) -> bool:
    """Whether the exe of this name runs programs that are not in it."""
    return _INTERPRETER.fullmatch(name) is not None


def cut(name: bytes) -> bytes:
    """At most 256 bytes, not ending inside a UTF-8 character."""
    if len(name) <= MAX_NAME_BYTES:
        return name
    end = MAX_NAME_BYTES
    while end > MAX_NAME_BYTES - 4 and name[end] & 0xC0 == 0x80:
        end -= 1
    return name[:end]
