# SPDX-License-Identifier: Apache-2.0
"""Settings of the server: one row each, from which flag, environment name, file key and documentation follow.

A field `data_dir` is the flag --data-dir, the variable EMBERWATCH_DATA_DIR and the key `data_dir` of the table [server] in
emberwatch.toml. Flags win over the environment, the environment over the file.
"""

import ipaddress
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from server.errors import ConfigError

Value = TypeVar("Value", str, int, bool)


def _row(default: Value, explanation: str, check: Callable[[Any], str | None] = lambda _: None) -> Value:
    row: Value = field(default=default, metadata={"help": explanation, "check": check})
    return row


def _address(value: str) -> str | None:
    host, _, port = value.rpartition(":")
    is_port = port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536
    return None if _is_host(host) and is_port else "must be HOST:PORT (port 0 takes a free one)"


def _is_host(name: str) -> bool:
    """Whether it may stand for a host at all: the system's look-up raises for what does not."""
    try:
        return bool(name.encode("idna"))
    except UnicodeError:
        return False


def _positive(value: int) -> str | None:
    return None if value > 0 else "must be above 0"


def _level(value: str) -> str | None:
    return None if value in {"debug", "info", "warning", "error"} else "must be debug, info, warning or error"


def _is_url(value: str) -> bool:
    try:
        parts = urllib.parse.urlsplit(value)
        return parts.scheme in {"http", "https"} and parts.port != 0 and bool(parts.hostname) and _is_host(parts.hostname or "")
    except ValueError:
        return False


def _page_url(value: str) -> str | None:
    return None if not value or _is_url(value) else "must be http(s)://HOST[:PORT]"


def _webhooks(value: str) -> str | None:
    return (
        None if all(_is_url(one.strip()) for one in value.split(",") if one.strip()) else "must be addresses, http(s)://..., commas between"
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, checked."""

    data_dir: str = _row("/var/lib/emberwatch", "Folder that holds everything the server keeps.")
    http: str = _row("127.0.0.1:4040", "Where the page and the API listen, HOST:PORT.", _address)
    grpc: str = _row("127.0.0.1:4041", "Where agents send their windows, HOST:PORT.", _address)
    insecure: bool = _row(False, "Listen beyond this host without encryption and without login.")
    retention_days: int = _row(30, "Longest time profiles are kept, days.", _positive)
    retention_bytes: int = _row(50 << 30, "Most bytes of profiles kept; the oldest leave first.", _positive)
    local_files: bool = _row(True, "Read names from binaries on this host whose identity matches exactly.")
    debug_roots: str = _row("/usr/lib/debug", "Folders with separate debug files, colons between.")
    debuginfod_urls: str = _row("", "Servers asked for debug files by build id, spaces between, in this order; empty asks none.")
    upload_bytes: int = _row(2 << 30, "Most bytes of one upload, and of one file from a debuginfod server.", _positive)
    symbol_files_bytes: int = _row(10 << 30, "Most bytes of uploaded and fetched files; those used longest ago leave first.", _positive)
    symbol_tables_bytes: int = _row(10 << 30, "Most bytes of tables of names; those used longest ago leave first.", _positive)
    page_url: str = _row(
        "",
        "Where people open the page, http(s)://HOST[:PORT], for webhooks; other names than this, the host's and addresses are refused.",
        _page_url,
    )
    webhook_urls: str = _row("", "Addresses that events are sent to, commas between; nothing else is ever called.", _webhooks)
    webhook_secret: str = _row("", "Key that events sent to webhooks are signed with (HMAC-SHA256).")
    log_level: str = _row("info", "How much is logged: debug, info, warning or error.", _level)


SECRETS = frozenset({"webhook_secret", "webhook_urls"})
"""Never shown again: not in an answer, not in a log."""


def checked(settings: Settings) -> Settings:
    """Give `settings` back, or raise ConfigError naming the setting, its value and what it must be."""
    for row in fields(settings):
        value = getattr(settings, row.name)
        complaint = row.metadata["check"](value)
        if complaint:
            shown = "***" if row.name in SECRETS else repr(value)
            raise ConfigError(f"{row.name} is {shown}: {complaint}")
    for name in ("http", "grpc"):
        address = getattr(settings, name)
        if not settings.insecure and not is_loopback(address):
            raise ConfigError(f"{name} is {address!r}: listening beyond this host is unencrypted and needs --insecure")
    return settings


def is_loopback(address: str) -> bool:
    """Whether HOST:PORT names this host only."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
