# SPDX-License-Identifier: Apache-2.0
"""Every address finds in the packed table the rule that the table has for it."""

import numpy as np

from agent.kernel.unwind_rows import MOST_NEW_RULES, PAGE_SHIFT, PackedTable, RuleNumbers, pack_table
from agent.records.unwind import RuleKind, UnwindTable, rule

FIRST, SECOND = rule(RuleKind.SP, 1), rule(RuleKind.BP, 2, 2)


def table(*rows: tuple[int, int]) -> UnwindTable:
    return UnwindTable(np.array([a for a, _ in rows], np.uint64), np.array([r for _, r in rows], np.uint32))


def rule_at(packed: PackedTable, numbers: RuleNumbers, addr: int) -> int:
    """As find_rule in bpf/shared/unwind.h, without the bisection."""
    page = (addr >> PAGE_SHIFT) - packed.low_page
    if not 0 <= page < len(packed.page_starts):
        return 0
    found = 0
    start = int(packed.page_starts[page])
    for row in packed.rows[start : start + int(packed.page_counts[page])].tolist():
        if row >> 16 <= addr & ((1 << PAGE_SHIFT) - 1):
            found = row & 0xFFFF
    return int(numbers.rules[found])


def test_a_rule_reaches_over_pages_without_rows_of_their_own() -> None:
    numbers = RuleNumbers()
    packed = pack_table(table((0x1010, FIRST), (0x2C07, SECOND), (0x3000, RuleKind.NONE)), numbers)
    assert packed is not None
    expected = {
        0x100F: 0,
        0x1010: FIRST,
        0x13FF: FIRST,
        0x1400: FIRST,
        0x2BFF: FIRST,
        0x2C06: FIRST,
        0x2C07: SECOND,
        0x2FFF: SECOND,
        0x3000: 0,
    }
    assert {addr: rule_at(packed, numbers, addr) for addr in expected} == expected
    assert rule_at(packed, numbers, 0x5000) == 0
    assert rule_at(packed, numbers, 0) == 0


def test_random_tables_give_each_address_its_rule() -> None:
    draw = np.random.default_rng(7)
    addresses = np.unique(draw.integers(0x40_0000, 0x40_0000 + 20_000, 997)).astype(np.uint64)
    rules = draw.integers(1, 23, len(addresses)).astype(np.uint32) << np.uint32(3) | np.uint32(RuleKind.SP)
    numbers = RuleNumbers()
    packed = pack_table(UnwindTable(addresses, rules), numbers)
    assert packed is not None
    for addr in draw.integers(int(addresses[0]), int(addresses[-1]), 500).tolist():
        at = int(np.searchsorted(addresses, np.uint64(addr), side="right")) - 1
        assert rule_at(packed, numbers, addr) == int(rules[at])


def test_rules_keep_their_numbers_and_new_ones_follow() -> None:
    numbers = RuleNumbers()
    assert numbers.numbers(np.array([FIRST, SECOND, FIRST], np.uint32)).tolist() in ([2, 3, 2], [3, 2, 3])
    before = numbers.rules.tolist()
    numbers.numbers(np.array([rule(RuleKind.SP, 7)], np.uint32))
    assert numbers.rules.tolist() == [*before, rule(RuleKind.SP, 7)]
    assert numbers.rules[0] == RuleKind.NONE


def test_rules_beyond_the_last_number_are_unsupported_and_counted() -> None:
    numbers = RuleNumbers(most=3)
    found = numbers.numbers(np.array([rule(RuleKind.SP, n) for n in (1, 2, 3)], np.uint32))
    assert sorted(found.tolist()) == [1, 1, 2]
    assert numbers.rules[1] == RuleKind.UNSUPPORTED
    assert numbers.refused == 2


def test_one_table_leaves_numbers_to_others() -> None:
    numbers = RuleNumbers()
    rows = [(at, rule(RuleKind.SP, 8 * at)) for at in range(1, MOST_NEW_RULES + 100)]
    packed = pack_table(table(*rows), numbers)
    assert packed is not None
    assert numbers.refused == 99 and len(numbers.rules) == MOST_NEW_RULES + 2
    packed = pack_table(table((0, rule(RuleKind.SP, 1)), (5, RuleKind.NONE)), numbers)
    assert packed is not None and len(numbers.rules) == MOST_NEW_RULES + 3


def test_empty_and_scattered_tables_are_none() -> None:
    assert pack_table(table(), RuleNumbers()) is None
    assert pack_table(table((0, FIRST), (1 << 40, RuleKind.NONE)), RuleNumbers()) is None
