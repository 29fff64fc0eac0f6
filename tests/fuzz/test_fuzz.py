# SPDX-License-Identifier: Apache-2.0
"""A seed corpus of mutations in every run of the tests: no death, no hang, no end that is not promised."""

import pytest

from tests.fuzz.__main__ import SHARES, fuzz
from tests.fuzz.targets import targets

MUTATIONS = 700
TARGETS = list(targets())


@pytest.mark.parametrize("target", TARGETS, ids=[target.name for target in TARGETS])
def test_damaged_input_ends_as_promised(target) -> None:  # type: ignore[no-untyped-def]
    assert target.name in SHARES
    ends = fuzz(target, max(7, round(MUTATIONS * SHARES[target.name])), seed=23)
    assert sum(ends.values()) >= 7
