# SPDX-License-Identifier: Apache-2.0
"""Known keys: both halves of a hash must agree, and memory is bounded."""

import numpy as np

from agent.ship.known import UNKNOWN, KeyHashes, KnownKeys


def _hashes(*values: int, second: int = 5) -> KeyHashes:
    return KeyHashes(np.array([values, [value + second for value in values]], np.uint64))


def _numbers(*values: int) -> np.ndarray:
    return np.array(values, np.uint64)


def test_learned_keys_are_found_and_others_are_not() -> None:
    known = KnownKeys()
    known.learn(b"D", _hashes(70, 20), _numbers(3, 9))
    known.learn(b"D", _hashes(50), _numbers(2**31))
    assert known.numbers(_hashes(20, 30, 50, 70, 99)).tolist() == [9, UNKNOWN, 2**31, 3, UNKNOWN]
    assert known.dictionary_id == b"D"


def test_half_a_hash_is_not_a_key() -> None:
    known = KnownKeys()
    known.learn(b"D", _hashes(70), _numbers(3))
    assert known.numbers(_hashes(70, second=6)).tolist() == [UNKNOWN]


def test_key_learned_again_takes_the_new_number() -> None:
    known = KnownKeys()
    known.learn(b"D", _hashes(70, 20), _numbers(3, 9))
    known.learn(b"D", _hashes(20, 20), _numbers(4, 4))
    assert (known.numbers(_hashes(70, 20)).tolist(), len(known)) == ([3, 4], 2)


def test_other_numbering_voids_all() -> None:
    known = KnownKeys()
    known.learn(b"D", _hashes(70), _numbers(3))
    known.learn(b"E", _hashes(20), _numbers(1))
    assert known.numbers(_hashes(70, 20)).tolist() == [UNKNOWN, 1]


def test_forgotten_keys_are_unknown() -> None:
    known = KnownKeys()
    known.learn(b"D", _hashes(70, 20, 50), _numbers(3, 9, 4))
    known.forget(_hashes(20, 99))
    assert known.numbers(_hashes(70, 20, 50)).tolist() == [3, UNKNOWN, 4]


def test_full_table_forgets_what_was_used_least_lately() -> None:
    known = KnownKeys(most_keys=8)
    known.learn(b"D", _hashes(*range(10, 90, 10)), _numbers(*range(8)))
    known.numbers(_hashes(10, 20, 30))
    known.learn(b"D", _hashes(500), _numbers(8))
    assert len(known) == 6
    assert known.numbers(_hashes(10, 20, 30, 500)).tolist() == [0, 1, 2, 8]
