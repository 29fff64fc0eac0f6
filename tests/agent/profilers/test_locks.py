# SPDX-License-Identifier: Apache-2.0
"""The account of waits for locks; what the programs see is tested on the real kernel."""

import numpy as np

from agent.profilers.breaker import Share
from agent.profilers.lock_links import LOCK_COUNTS
from agent.profilers.locks import account_of_waits
from emberwatch.v1.marks_pb2 import LossReason

COUNTS = dict.fromkeys(LOCK_COUNTS.names or (), 0) | {"filtered": 7, "unpaired": 3, "starts_full": 2, "rows_full": 5, "due": 24}
OBSERVED = np.array([23, 1], np.uint64)


def test_what_is_not_stored_is_filtered_or_lost_for_a_reason() -> None:
    account = account_of_waits(OBSERVED, COUNTS, Share(10, 10))
    assert (account.expected, account.filtered) == (24 + 7 + 3 + 7, 7)
    assert account.lost == {LossReason.LOSS_REASON_MAP_FULL: 7, LossReason.LOSS_REASON_UNPAIRED: 3}


def test_rows_that_are_owed_and_not_there_are_lost_without_a_reason() -> None:
    account = account_of_waits(OBSERVED, COUNTS | {"due": 30}, Share(10, 10))
    assert account.expected == 41 + 6
    assert account.lost[LossReason.LOSS_REASON_UNEXPLAINED] == 6


def test_all_of_it_is_scaled_when_the_programs_ran_for_a_part_of_the_time() -> None:
    account = account_of_waits(OBSERVED, COUNTS, Share(5, 10))
    assert (account.expected, account.filtered, sum(account.lost.values())) == (2 * 41, 14, 20)
