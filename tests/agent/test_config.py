# SPDX-License-Identifier: Apache-2.0
"""Settings are checked before anything starts, and a complaint names setting, value and remedy."""

from dataclasses import replace

import pytest

from agent.config import WAIT_CLASSES, Settings, as_mapping, checked
from agent.errors import ConfigError
from agent.profilers.wait_classes import NAMES


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"server": "localhost"}, "server is 'localhost': must be HOST:PORT"),
        ({"rate_hz": 0}, "rate_hz is 0: must be from 1 to 10000"),
        ({"window_s": 61}, "window_s is 61"),
        ({"pid": "12,x"}, "pid is '12,x'"),
        ({"pid": "²"}, "pid is '²'"),
        ({"server": "127.0.0.1:²"}, "server is '127.0.0.1:²': must be HOST:PORT"),
        ({"server": "\udcff:4041"}, "must be HOST:PORT"),
        ({"server": f"{'a' * 64}:4041"}, "must be HOST:PORT"),
        (
            {"wait_classes": "web:net"},
            "wait_classes is 'web:net': web:net must be SERVICE:CLASS=CLASS or SERVICE:CALL=CLASS, of",
        ),
        ({"wait_classes": "net=poll"}, "must be SERVICE:CLASS=CLASS"),
        ({"wait_classes": "web:net=idle"}, "must be SERVICE:CLASS=CLASS"),
        ({"wait_classes": "web:a-b=poll"}, "must be SERVICE:CLASS=CLASS"),
        ({"wait_classes": "web:net=poll,web:net=disk"}, "net of web is named twice"),
        ({"host": "n" * 257}, "must have at most 256 bytes"),
    ],
)
def test_bad_value_is_named(changed: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        checked(Settings(**changed))  # type: ignore[arg-type]


def test_settings_survive_the_way_to_the_collector() -> None:
    settings = Settings(rate_hz=49, pid="7,23")
    assert Settings(**as_mapping(settings)) == settings  # type: ignore[arg-type]
    assert settings.pids() == {7, 23}


def test_wait_classes_are_told_by_service() -> None:
    """Names of services are bytes and may hold colons."""
    settings = checked(Settings(wait_classes="postgres:net=poll, postgres:pipe=other,a:b:net=poll,\udcff:sleep=other,"))
    assert settings.class_overrides() == {
        b"postgres": {b"net": b"poll", b"pipe": b"other"},
        b"a:b": {b"net": b"poll"},
        b"\xff": {b"sleep": b"other"},
    }
    assert checked(Settings()).class_overrides() == {}
    assert settings.override_calls() == frozenset()


def test_wait_classes_name_calls_beside_classes() -> None:
    settings = checked(Settings(wait_classes="postgres:recvfrom=poll,web:ep_poll=other,web:net=poll"))
    assert settings.class_overrides()[b"postgres"] == {b"recvfrom": b"poll"}
    assert settings.override_calls() == {"recvfrom", "ep_poll"}


def test_wait_classes_are_those_of_the_one_table() -> None:
    assert sorted(WAIT_CLASSES) == sorted(name.decode() for name in NAMES)


def test_host_name_is_bytes_whatever_they_are() -> None:
    """A shell hands over bad UTF-8 as lone surrogates."""
    assert checked(Settings(host="ho\udcffst</script>")).host_name() == b"ho\xffst</script>"
    assert len(checked(Settings(host="n" * 256)).host_name()) == 256


def test_what_must_be_named_does_not_come_with_all() -> None:
    assert Settings().wants("lock") and not Settings().wants("lock_hold")
    assert replace(Settings(), kinds="all,lock_hold").wants("lock_hold")
