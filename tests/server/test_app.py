# SPDX-License-Identifier: Apache-2.0
"""What keeps a server from starting is told in one sentence, and nothing is left behind."""

import contextlib
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from server.app import Server
from server.config import Settings, checked
from server.errors import ConfigError, ServerError
from server.http.listening import refusal_to_listen
from tests.support.servers import serving

FREE = "127.0.0.1:0"


@pytest.fixture
def taken() -> Iterator[str]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        yield f"127.0.0.1:{other.getsockname()[1]}"


def settings(data: Path, http: str = FREE, grpc: str = FREE) -> Settings:
    return Settings(data_dir=str(data), http=http, grpc=grpc, insecure=True)


def refusal(data: Path, http: str = FREE, grpc: str = FREE) -> str:
    with pytest.raises(ServerError) as caught:
        Server(settings(data, http, grpc)).start()
    return str(caught.value)


def test_port_that_is_taken_is_named_with_the_flag(tmp_path: Path, taken: str) -> None:
    assert refusal(tmp_path, http=taken) == f"cannot listen on {taken}: Address already in use; choose another address with --http"
    assert (
        refusal(tmp_path, grpc=taken) == f"cannot listen for agents on {taken}: Address already in use; choose another address with --grpc"
    )


@pytest.mark.parametrize("address", ["nowhere.invalid:0", "203.0.113.7:0"], ids=["name", "address of another host"])
def test_address_that_is_not_ours_is_told_in_words(tmp_path: Path, address: str) -> None:
    for said in (refusal(tmp_path, http=address), refusal(tmp_path, grpc=address)):
        assert said.startswith("cannot listen ")
        assert refusal_to_listen(address) in said
        assert refusal_to_listen(address)


def test_debuginfod_server_that_is_no_address_is_named(tmp_path: Path) -> None:
    given = Settings(data_dir=str(tmp_path), http=FREE, grpc=FREE, debuginfod_urls="https://good.example file:///etc/passwd")
    with pytest.raises(ConfigError, match="debuginfod server 'file:///etc/passwd' must be http"):
        Server(given).start()
    assert not list(tmp_path.iterdir())


def test_start_after_a_refusal_succeeds(tmp_path: Path, taken: str) -> None:
    """The lock on the data and the other port were let go."""
    refusal(tmp_path, http=taken)
    server = Server(settings(tmp_path))
    addresses = server.start()
    try:
        assert refusal_to_listen(addresses.http) == refusal_to_listen(addresses.grpc) == "Address already in use"
        with pytest.raises(ConfigError, match=r"another server .* uses"):
            Server(settings(tmp_path)).start()
    finally:
        server.close()


def test_a_name_with_two_addresses_is_one_server(tmp_path: Path) -> None:
    server = Server(settings(tmp_path, http="localhost:0"))
    addresses = server.start()
    try:
        with urllib.request.urlopen(f"http://{addresses.http}/healthz", timeout=60) as answer:
            assert answer.status == 200
    finally:
        server.close()


def test_stop_under_load_leaves_no_traceback(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A thread that ended its task used to wake a loop whose descriptor was closed already."""
    answered = [0]

    def ask(host: str, port: int) -> None:
        with contextlib.suppress(OSError):  # the server is gone
            while True:
                with socket.create_connection((host, port), 60) as connection:
                    connection.sendall(b"GET /api/v1/services HTTP/1.0\r\n\r\n")
                    while connection.recv(65536):
                        answered[0] += 1

    with serving(tmp_path) as server:
        host, _, port = server.http.partition(":")
        threads = [threading.Thread(target=ask, args=(host, int(port))) for _ in range(4)]
        for thread in threads:
            thread.start()
        while answered[0] < 8:
            time.sleep(0.01)
    for thread in threads:
        thread.join()
    assert server.process.returncode == 0
    assert "Traceback" not in capfd.readouterr().err


def test_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    assert refusal(tmp_path / "file") == f"cannot use {tmp_path / 'file'} for data: File exists; choose another folder with --data-dir"


def test_secrets_of_webhooks_are_in_no_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """E16: what stands in the configuration is not read back from any address, nor from the log."""
    hidden = Settings(
        data_dir=str(tmp_path),
        http=FREE,
        grpc=FREE,
        webhook_urls="http://127.0.0.1:1/services/s3cr3t-path",
        webhook_secret="s3cr3t",
    )
    server = Server(hidden)
    answers = []
    with caplog.at_level("DEBUG"):
        base = f"http://{server.start().http}"
        try:
            paths = (
                "/",
                "/metrics",
                "/healthz",
                "/settings",
                "/api/v1/settings",
                "/api/v1/config",
                "/api/v1/events?from=-1h",
                "/api/v1/agents",
            )
            for path in (*paths, "/api/v1/deploys?from=-1h", "/api/v1/shares", "/api/v1/views", "/api/v1/services"):
                try:
                    with urllib.request.urlopen(base + path, timeout=60) as answer:
                        answers.append(answer.read().decode() + str(answer.headers))
                except urllib.error.HTTPError as error:
                    with error:
                        answers.append(error.read().decode() + str(error.headers))
        finally:
            server.close()
    assert len(answers) == 12 and "s3cr3t" not in "".join(answers) + caplog.text
    with pytest.raises(ConfigError) as caught:
        checked(replace(hidden, webhook_urls="ftp://s3cr3t@host/"))
    assert "s3cr3t" not in str(caught.value)
