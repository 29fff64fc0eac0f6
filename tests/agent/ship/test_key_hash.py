# SPDX-License-Identifier: Apache-2.0
"""Equal keys hash alike in every batch; keys that differ in anything do not."""

from agent.records.folded import folded_from_message
from agent.ship.key_hash import KeyHasher
from tests.support.batches import Row, batch_of

HASHER = KeyHasher(b"s" * 16)
STACK = ["app+0x3", "app+0x2", "app+0x1"]


def _hashes(rows: list[Row], hasher: KeyHasher = HASHER) -> list[tuple[int, int]]:
    """One hash a row, in order; each service of `rows` must be there once."""
    return [(int(one.lanes[0, 0]), int(one.lanes[1, 0])) for one in hasher.hashes(folded_from_message(batch_of(rows)))]


def test_tables_around_a_key_do_not_matter() -> None:
    alone = _hashes([("web", "main", STACK, 7)])
    among = _hashes([("db", "io", ["lib+0x9", "app+0x2", "app+0x1"], 3), ("web", "main", STACK, 2)])
    assert alone[0] == among[1]


def test_every_part_of_a_key_matters() -> None:
    rows: list[Row] = [
        ("web", "main", STACK, 1),
        ("web", "io", STACK, 1),
        ("web", "main", STACK[1:], 1),
        ("web", "main", STACK[:2], 1),
        ("web", "main", ["app+0x2", "app+0x3", "app+0x1"], 1),
        ("web", "main", ["app+0x3", "app+0x1", "app+0x2"], 1),
        ("web", "main", ["app+0x3", "app+0x2", "app+0x2", "app+0x1"], 1),
        ("web", "main", ["lib+0x3", "app+0x2", "app+0x1"], 1),
        ("web", "main", ["app+0x4", "app+0x2", "app+0x1"], 1),
        ("web", "main", ["jit:x"], 1),
        ("web", "main", ["bpf:x"], 1),
        ("web", "main", ["[exited]"], 1),
        ("web", "main", [], 1),
    ]
    single = [_hashes([row])[0] for row in rows] + _hashes([("db", "main", STACK, 1)])
    assert len({first for first, _ in single}) == len({second for _, second in single}) == len(rows) + 1


def test_leaf_and_caller_at_one_place_differ() -> None:
    leaf = _hashes([("web", "main", ["app+0x1"], 1)])[0]
    recursive = _hashes([("web", "main", ["app+0x1", "app+0x1"], 1)])[0]
    assert leaf != recursive


def test_deep_stacks_are_told_apart_at_every_depth() -> None:
    deep = [f"app+{depth:#x}" for depth in range(1, 255)]
    seen = {_hashes([("web", "main", [*deep[:at], "lib+0x1", *deep[at + 1 :]], 1)])[0] for at in range(0, 254, 23)}
    assert len(seen) == 12


def test_other_secret_gives_other_hashes() -> None:
    assert _hashes([("web", "main", STACK, 1)]) != _hashes([("web", "main", STACK, 1)], KeyHasher(b"t" * 16))
