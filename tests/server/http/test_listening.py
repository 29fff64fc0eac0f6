# SPDX-License-Identifier: Apache-2.0
"""An address is taken whole or not at all."""

import socket

import pytest

from server.http.listening import bound_sockets, refusal_to_listen


def test_port_0_takes_one_free_port_for_all_addresses_of_a_name() -> None:
    sockets = bound_sockets("localhost:0")
    try:
        assert len({taken.getsockname()[1] for taken in sockets}) == 1
        address = f"localhost:{sockets[0].getsockname()[1]}"
        assert refusal_to_listen(address) == "Address already in use"
    finally:
        for taken in sockets:
            taken.close()
    assert refusal_to_listen(address) == ""


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_brackets_of_ipv6_are_no_part_of_the_host() -> None:
    assert refusal_to_listen("[::1]:0") in {"", "Cannot assign requested address"}


def test_what_leads_nowhere_is_told_in_the_systems_words() -> None:
    assert refusal_to_listen("203.0.113.7:0") == "Cannot assign requested address"
    assert refusal_to_listen("nowhere.invalid:0")
