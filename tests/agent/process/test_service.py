# SPDX-License-Identifier: Apache-2.0
"""Tests of service and version; processes are folders laid out like /proc/PID."""

import os
from pathlib import Path

import pytest

from agent.process.directory import ProcessDirectory
from agent.process.service import MAX_NAME_BYTES, ServiceNames, cut, environment_wanted, is_interpreter, resource_attribute
from agent.records.binary import Binary, BinaryId
from emberwatch.v1 import batch_pb2 as pb

BUILD_ID = bytes.fromhex("0123456789abcdef0123456789abcdef01234567")


def names(root: Path, environ: bytes = b"", cgroup: bytes = b"0::/\n", exe: str = "/opt/shop/checkout") -> ServiceNames:
    process = root / "42"
    process.mkdir()
    (process / "environ").write_bytes(environ)
    (process / "cgroup").write_bytes(cgroup)
    (process / "exe").symlink_to(exe)
    directory = ProcessDirectory.open(root, 42)
    assert directory is not None
    with directory:
        return ServiceNames(directory, b"comm")


def binary(kind: pb.BuildIdKind = pb.BUILD_ID_KIND_GNU, build_id: bytes = BUILD_ID) -> Binary:
    return Binary(pb.BINARY_KIND_ELF, BinaryId(kind, build_id, b"\xcd" * 16), b"/opt/shop/checkout", (), 7)


UNIT = b"0::/system.slice/shop.service\n"
CONTAINER = b"0::/system.slice/shop.service/docker-" + b"3f" * 32 + b".scope\n"


@pytest.mark.parametrize(
    ("environ", "cgroup", "service"),
    [
        (b"A=1\0EMBERWATCH_SERVICE=ours\0OTEL_SERVICE_NAME=otel\0", CONTAINER, b"ours"),
        (b"OTEL_SERVICE_NAME=otel\0OTEL_RESOURCE_ATTRIBUTES=service.name=attr\0", CONTAINER, b"otel"),
        (b"OTEL_RESOURCE_ATTRIBUTES=service.name=at%20tr\0", CONTAINER, b"at tr"),
        (b"XEMBERWATCH_SERVICE=no\0EMBERWATCH_SERVICE=\0", CONTAINER, b"3f3f3f3f3f3f"),
        (b"", UNIT, b"shop"),
        (b"", b"0::/user.slice/session-3.scope\n", b"checkout"),
    ],
)
def test_the_first_that_is_known_names_the_service(tmp_path: Path, environ: bytes, cgroup: bytes, service: bytes) -> None:
    assert names(tmp_path, environ, cgroup).service == service


def test_a_deleted_exe_keeps_its_name(tmp_path: Path) -> None:
    assert names(tmp_path, exe="/opt/shop/checkout (deleted)").service == b"checkout"


def test_an_exe_really_named_deleted_keeps_that(tmp_path: Path) -> None:
    live = tmp_path / "x (deleted)"
    live.touch()
    assert names(tmp_path, exe=str(live)).service == b"x (deleted)"


def test_version_comes_from_the_attributes_percent_decoded(tmp_path: Path) -> None:
    environ = b"OTEL_RESOURCE_ATTRIBUTES=team=a, service.version=2.4%2B1%2Cb ,service.version=3\0"
    assert names(tmp_path, environ).version(binary()) == b"2.4+1,b"


def test_version_is_else_the_build_id(tmp_path: Path) -> None:
    found = names(tmp_path)
    assert found.version(binary()) == b"0123456789ab"
    assert found.version(binary(pb.BUILD_ID_KIND_NONE, b"")) == b"cdcdcdcdcdcd"
    assert found.version(binary(pb.BUILD_ID_KIND_GO, b"aaaaaaaaaaaaaaaaaaaa/xqJ2b9-Lk3mQ_wertyui")) == b"xqJ2b9-Lk3mQ"
    assert found.version(None) == b""


def test_the_build_of_an_interpreter_is_no_version(tmp_path: Path) -> None:
    assert names(tmp_path, exe="/usr/bin/python3.11").version(binary()) == b""


@pytest.mark.parametrize(
    "name", ["python", "python3.11", "pypy3", "java", "node", "ruby3.1", "perl", "php-fpm8.2", "php8.2", "bash", "dash"]
)
def test_interpreters_are_known(name: str) -> None:
    assert is_interpreter(name.encode())


@pytest.mark.parametrize("name", ["checkout", "javac2", "pythonic", "nodejs-exporter", "sshd", "perlbal-x", ""])
def test_other_programs_are_no_interpreters(name: str) -> None:
    assert not is_interpreter(name.encode())


def test_only_the_wanted_variables_are_taken() -> None:
    assert environment_wanted(b"SECRET=s3cr3t\0OTEL_SERVICE_NAME=a\0OTEL_SERVICE_NAME=b\0cut") == {b"OTEL_SERVICE_NAME": b"a"}


def test_a_broken_attribute_list_gives_nothing() -> None:
    assert resource_attribute(b"=,,%,service.version", b"service.version") == b""


def test_names_are_cut_between_characters() -> None:
    assert cut(b"x" * 300) == b"x" * MAX_NAME_BYTES
    # 255 letters and a character of two bytes: it would end at byte 257
    assert cut(b"x" * 255 + "é".encode()) == b"x" * 255


def test_our_own_names_can_be_read() -> None:
    directory = ProcessDirectory.open(Path("/proc"), os.getpid())
    assert directory is not None
    with directory:
        assert ServiceNames(directory, b"comm").service
