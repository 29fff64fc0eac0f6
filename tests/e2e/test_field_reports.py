# SPDX-License-Identifier: Apache-2.0
"""Reports from the field about folded text, diffs and flame graphs, each as a small input with the value that is right."""

import json

import pytest

from server.http.diff_json import DiffSort, Search, diff_json, diff_table_json
from server.http.packed import json_bytes
from server.interop.folded import FoldedStack, Frame, export_stacks, import_text
from server.interop.folded_diff import FoldedSide, folded_diff
from server.profile.cut import View
from server.profile.diff import Shape
from server.query.diff_query import DiffAnswer
from server.query.profile_query import ProfileQuery, Question
from server.query.selector import parse_selector
from server.query.timerange import TimeRange
from tests.server.profile.trees import rows_of
from tests.server.query.fakes import NOW_NS, START_NS, FakeNamer, FakeStore

HOSTILE = (
    "net/http.(*liveSwitchReader).Read",
    "foo(int, int)",
    "(anonymous namespace)::A::operator<<(int)",
    "<[u64; 3] as arr::T>::go",
    "a|b",
    "9c51fd34 java.lang.String.hashCode ([JIT app cache])",
    "class@anonymous\0/srv/x.php:3",
    "\x1b[31m",
    'Time::Moment::(""',
    "A<B>&C",
    "</script><img src=x onerror=alert(1)>",
    "<lambda>",
    "two\nlines",
    "\u202eright to left",
)


def compared(a: str, b: str) -> DiffAnswer:
    return folded_diff(FoldedSide("a", import_text(a)), FoldedSide("b", import_text(b)))


def graph(answer: DiffAnswer, shape: Shape = Shape.B) -> dict[str, object]:
    made: dict[str, object] = json.loads(json_bytes(diff_json(answer, View(1200), shape, Search())))
    return made


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_whole_from_folded_text_to_the_graph(name: str) -> None:
    """F2, F3, F4, F6, F9: brackets, commas, semicolons, bars, spaces, NUL, escapes and markup are parts of names."""
    (line,) = export_stacks([FoldedStack("G1 Conc#0", (Frame("main"), Frame(name)), 5)])
    assert "\n" not in line and "\0" not in line
    assert import_text(line).stacks == [FoldedStack("G1 Conc#0", (Frame("main"), Frame(name)), 5)]
    strings = graph(compared(line, line))["strings"]
    assert isinstance(strings, list) and {"G1 Conc#0", "main", name} <= set(strings)


def test_lines_that_are_no_stacks_are_counted_with_their_number_and_reason() -> None:
    """F5: no silent "ignored lines", no empty graph without a word."""
    text = "main;x\nmain;x 1e3\nmain;x -3\nmain;x 1.5\nmain;x\t7\n\nmain;x 7\r\n"
    imported = import_text(text)
    assert [stack.count for stack in imported.stacks] == [7]
    assert [rejected.line for rejected in imported.rejected] == [1, 2, 3, 4, 5, 6]
    assert all(rejected.reason for rejected in imported.rejected)
    notes = compared(text, "main;x 7\n").notes
    assert any("6 lines are no stacks, the first is line 1" in note for note in notes)


def test_vanished_stacks_are_in_the_union_once_and_the_same_twice_is_all_zero() -> None:
    """F12."""
    answer = compared("main;old_mid;old_leaf 10\nmain;kept 10\n", "main;kept 10\n")
    whole = graph(answer, Shape.UNION)
    assert whole["stacks"] == {"new": 0, "vanished": 1}
    assert {"old_mid", "old_leaf"} <= set(whole["strings"])  # type: ignore[call-overload]
    vanished = [row["name"] for row in diff_table_json(answer, DiffSort.CHANGE, 10, Search())["rows"] if row["state"] == "vanished"]
    assert sorted(vanished) == ["old_leaf", "old_mid"]
    same = compared("main;x 10\nmain;y 7\n", "main;x 10\nmain;y 7\n")
    assert not same.diff.changes().any() and not same.diff.is_beyond().any()


def test_rate_and_duration_are_no_change_and_an_empty_side_is_said() -> None:
    """F13: 1000 Hz beside 100 Hz, 24 h beside 15 min, something beside nothing."""
    slow, fast = "main;x 700\nmain;y 300\n", "main;x 7000\nmain;y 3000\n"
    answer = compared(fast, slow)
    assert not answer.diff.changes().any()
    assert (answer.diff.a.sum, answer.diff.b.sum) == (10_000, 1_000)  # raw counts stay
    empty = compared(slow, "")
    assert "side B is empty" in empty.notes
    assert not empty.diff.is_beyond().any() and graph(empty)["total"] == 0


def test_a_chain_of_70_with_two_leaves_stays_two_stacks() -> None:
    """F16."""
    chain = ";".join(f"f{depth}" for depth in range(70))
    answer = compared(f"{chain};x 7\n{chain};y 23\n", "")
    assert sorted(rows_of(answer.diff.a).values()) == [7, 23]
    assert {len(path) for path in rows_of(answer.diff.a)} == {71}


def test_a_stack_of_30_000_frames_is_drawn_and_no_stacks_are_an_answer() -> None:
    """F17, F18."""
    deep = ";".join(["f"] * 30_000)
    nodes = graph(compared(f"{deep} 7\n", f"{deep} 7\n"))["nodes"]
    assert isinstance(nodes, dict) and nodes["total"][0] == 7
    nothing = graph(compared("", ""))
    assert nothing["total"] == 0


def test_generic_instances_stay_apart() -> None:
    """F22: what the compiler made of one function are several, unless asked otherwise."""
    answer = compared("main;foo[go.shape.int64] 7\nmain;foo[go.shape.string] 23\n", "")
    assert sorted(rows_of(answer.diff.a)) == [("main", "foo[go.shape.int64]"), ("main", "foo[go.shape.string]")]


def test_lines_of_a_function_are_one_node() -> None:
    """F23: two places of one function are one frame."""
    store = FakeStore()
    store.add([("shop", "a", "t", ["main", "f"], 7), ("shop", "a", "t", ["main", "f"], 23)])
    query = ProfileQuery(store, FakeNamer(), lambda: NOW_NS)
    profile = query.profile(Question(parse_selector("cpu{}"), TimeRange(START_NS, NOW_NS), column="samples"))
    assert rows_of(profile.weighed) == {("main", "f"): 30}
