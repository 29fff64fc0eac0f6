# SPDX-License-Identifier: Apache-2.0
"""Each change is reported once, by the frame that explains it."""

import numpy as np
import pytest

from server.profile.changed import NOTHING, changed_functions
from server.profile.diff import Diff, compare
from server.profile.top import first_calls
from tests.server.profile.sides import Noise, diff_of, drawn_side, service


def reported(diff: Diff) -> dict[str, str | None]:
    """Functions beyond noise, with what explains them."""
    values = changed_functions(diff, first_calls(diff.tree))
    names = diff.tree.table.names
    return {
        names[name]: None if by == NOTHING else names[by]
        for name, by, is_beyond in zip(values.name.tolist(), values.explained_by.tolist(), values.is_beyond.tolist(), strict=True)
        if is_beyond
    }


def test_totals_count_a_recursive_function_once() -> None:
    diff = diff_of([(["f", "g", "f"], [30]), (["h"], [70])], [(["f"], [7]), (["h"], [93])])
    values = changed_functions(diff, first_calls(diff.tree))
    row = [diff.tree.table.names[n] for n in values.name.tolist()].index("f")
    assert (values.a_total[row], values.b_total[row], values.a_own[row], values.b_own[row]) == (30, 7, 30, 7)
    assert values.change[row] == pytest.approx(-0.23)


def test_callers_are_explained_by_what_they_call() -> None:
    """And what parse takes, all others have less of: shares of 10,000 and then of 11,000."""
    a = [(["main", "serve", "parse"], [1000]), (["main", "serve", "send"], [3000]), (["main", "idle"], [6000])]
    b = [(["main", "serve", "parse"], [2000]), (["main", "serve", "send"], [3000]), (["main", "idle"], [6000])]
    assert reported(diff_of(a, b)) == {"parse": None, "serve": "parse", "send": "parse", "idle": "parse"}


def test_what_is_called_is_explained_by_a_caller_that_grew_as_a_whole() -> None:
    a = [(["main", "gc", "mark"], [600]), (["main", "gc", "sweep"], [400]), (["main", "work"], [9000])]
    b = [(["main", "gc", "mark"], [1200]), (["main", "gc", "sweep"], [800]), (["main", "work"], [9000])]
    assert reported(diff_of(a, b)) == {"gc": None, "mark": "gc", "sweep": "gc", "work": "gc"}


def test_a_chain_is_explained_by_its_highest_frame() -> None:
    a = [(["main", "x"], [9000]), (["main", "y"], [1000])]
    b = [(["main", "x"], [8500]), (["main", "y"], [1000]), (["main", "new_a", "new_b", "new_c"], [500])]
    found = reported(diff_of(a, b))
    assert (found["new_a"], found["new_b"], found["new_c"]) == (None, "new_a", "new_a")


def test_room_made_by_one_function_explains_the_others() -> None:
    a = [([f"part_{i}"], [10_000]) for i in range(8)] + [(["old"], [20_000])]
    b = [([f"part_{i}"], [10_000]) for i in range(8)]
    found = reported(diff_of(a, b))
    assert found.pop("old") is None
    assert found == {f"part_{i}": "old" for i in range(8)}


@pytest.mark.parametrize("factor", [1.2, 0.0], ids=["20 % slower", "dropped"])
def test_a_planted_change_is_found_and_hardly_ever_anything_else(factor: float) -> None:
    """A function of 4 % changes on 20 replicates of 5 % over-dispersion. Of what is marked, at most 5 % may be false.

    Over 200 other seeds it was found in 99.5 % (slower) and 100 % (dropped), and named alone in 92.5 % and 95 %.
    """
    drawn, seeds, found, alone, marked, false = service(), 40, 0, 0, 0, 0
    at = drawn.names.index("step_3_2")
    for seed in range(seeds):
        random = np.random.default_rng(1000 + seed)
        before = random.zipf(1.6, drawn.nodes.size).clip(max=100).astype(float)
        before[at] = before.sum() * 0.04
        before *= 300_000 / before.sum()
        after = before.copy()
        after[at] *= factor
        sides = [drawn_side(random, drawn.nodes, weights, Noise(20, 0.05)) for weights in (before, after)]
        all_marked = reported(compare(drawn.tree, sides[0], sides[1]))
        sources = {name for name, by in all_marked.items() if by is None}
        found += "step_3_2" in sources
        alone += sources == {"step_3_2"}
        marked += len(all_marked)
        false += len(sources - {"step_3_2", "handle_3"})
    assert found >= 0.95 * seeds
    assert alone >= 0.85 * seeds
    assert false <= 0.05 * marked
