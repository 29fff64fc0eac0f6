# SPDX-License-Identifier: Apache-2.0
"""The server listens on this host only unless told otherwise."""

import re

import pytest

from server.config import Settings, checked, is_loopback
from server.errors import ConfigError

ODD_ADDRESSES = [
    ("http", f"{'a' * 64}:0"),
    ("grpc", "\udcff:0"),
    ("http", "127.0.0.1:²"),
    ("grpc", "a..b:0"),
    ("http", "127.0.0.1:00000000"),
]


@pytest.mark.parametrize("address", ["0.0.0.0:4040", "10.0.0.1:4040", "[::]:4040", "127.0.0.1.example.com:4040"])
def test_listening_beyond_this_host_needs_a_word(address: str) -> None:
    with pytest.raises(ConfigError, match="--insecure"):
        checked(Settings(http=address))
    assert checked(Settings(http=address, insecure=True)).http == address


@pytest.mark.parametrize("address", ["127.0.0.1:0", "localhost:4040", "[::1]:4040"])
def test_loopback_is_known(address: str) -> None:
    assert is_loopback(address)


@pytest.mark.parametrize(("name", "value"), [("http", "4040"), ("grpc", "host:70000"), ("retention_days", 0), *ODD_ADDRESSES])
def test_bad_value_is_named(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"{name} is {value!r}: must")):
        checked(Settings(**{name: value}))  # type: ignore[arg-type]
