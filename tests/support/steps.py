# SPDX-License-Identifier: Apache-2.0
"""How much Python a piece of work is, counted: the same on every machine, however busy, where a time is not."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[[], object]) -> int:
    """Lines of Python that the work runs, each as often as it does; a turn of a comprehension is one, whatever is called in C is none."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        del frame, argument
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count
