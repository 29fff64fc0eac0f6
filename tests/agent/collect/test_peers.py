# SPDX-License-Identifier: Apache-2.0
"""A service has so many peers by name; the rest are one."""

from agent.collect.peers import FORGET_WINDOWS, MOST_PEERS, OTHER, PeerNames


def test_peers_beyond_the_limit_are_put_together_and_others_keep_their_names() -> None:
    peers = PeerNames()
    peers.begin_window()
    for number in range(MOST_PEERS):
        assert peers.name(b"web", b"out 10.0.0.1:%d" % number) == b"out 10.0.0.1:%d" % number
    assert peers.name(b"web", b"out 10.0.0.2:80") == OTHER
    assert peers.name(b"web", b"out 10.0.0.1:7") == b"out 10.0.0.1:7"
    assert peers.name(b"shop", b"out 10.0.0.2:80") == b"out 10.0.0.2:80"
    assert peers.name(b"web", b"in :80") == b"in :80"
    assert peers.name(b"web", OTHER) == OTHER


def test_peer_that_is_not_met_for_long_gives_its_place_away() -> None:
    peers = PeerNames()
    for number in range(MOST_PEERS):
        peers.name(b"web", b"out 10.0.0.1:%d" % number)
    for _ in range(FORGET_WINDOWS):
        peers.begin_window()
        peers.name(b"web", b"out 10.0.0.1:7")
    assert peers.name(b"web", b"out 10.0.0.2:80") == OTHER
    peers.begin_window()
    assert peers.name(b"web", b"out 10.0.0.2:80") == b"out 10.0.0.2:80"
    assert peers.name(b"web", b"out 10.0.0.1:7") == b"out 10.0.0.1:7"
