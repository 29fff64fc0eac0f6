# SPDX-License-Identifier: Apache-2.0
"""What tests of symbols share: a clock that is put forward."""

import pytest


class Clock:
    now_s = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()
