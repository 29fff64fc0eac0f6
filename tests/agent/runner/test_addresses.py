# SPDX-License-Identifier: Apache-2.0
"""A host tells the addresses that others can reach it by, and reads them again after a minute."""

from pathlib import Path

import pytest

from agent.runner.addresses import MOST_ADDRESSES, HostAddresses

MINUTE_NS = 60 * 10**9
FIB_TRIE = """Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 127.0.0.1
        /32 host LOCAL
     |-- 10.0.0.0
        /24 link UNICAST
     |-- 10.0.0.7
        /32 host LOCAL
     |-- 10.0.0.255
        /32 link BROADCAST
Local:
     |-- 10.0.0.7
        /32 host LOCAL
     |-- 10.0.0.999
        /32 host LOCAL
"""
IF_INET6 = """fe8000000000000000fc00fffe000001 04 40 20 80     eth0
00000000000000000000000000000001 01 80 10 80       lo
20010db8000000000000000000000009 04 40 00 82     eth0
cut off
"""


def network(directory: Path, fib_trie: str = FIB_TRIE, if_inet6: str = IF_INET6) -> Path:
    (directory / "fib_trie").write_text(fib_trie)
    (directory / "if_inet6").write_text(if_inet6)
    return directory


def test_addresses_of_both_families_each_once(tmp_path: Path) -> None:
    assert HostAddresses(network(tmp_path)).at(0) == ["10.0.0.7", "2001:db8::9"]


def test_they_are_read_again_after_a_minute(tmp_path: Path) -> None:
    addresses = HostAddresses(network(tmp_path))
    addresses.at(0)
    network(tmp_path, if_inet6="")
    assert addresses.at(MINUTE_NS - 1) == ["10.0.0.7", "2001:db8::9"]
    assert addresses.at(MINUTE_NS) == ["10.0.0.7"]


def test_there_are_at_most_so_many(tmp_path: Path) -> None:
    many = "".join(f"     |-- 10.0.1.{n}\n        /32 host LOCAL\n" for n in range(MOST_ADDRESSES + 7))
    assert len(HostAddresses(network(tmp_path, many)).at(0)) == MOST_ADDRESSES


@pytest.mark.parametrize("text", ["", "|--\n", "\x00\xff", "     |-- 10.0.0.7\n"])
def test_what_is_no_table_has_no_address(tmp_path: Path, text: str) -> None:
    assert HostAddresses(network(tmp_path, text, text)).at(0) == []


def test_a_kernel_without_networks_has_none(tmp_path: Path) -> None:
    assert HostAddresses(tmp_path / "none").at(0) == []
