# SPDX-License-Identifier: Apache-2.0
"""Folded text is what flamegraph.pl reads, and nothing is lost on the way there and back."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from server.interop.folded import FoldedStack, Frame, escape, export_lines, export_stacks, import_text, unescape
from server.profile.join import Branch, join
from server.profile.names import CodeKind
from tests.server.profile.trees import weighed

TEXT = st.text(alphabet=st.characters(codec=None), max_size=12)
FRAMES = st.lists(st.builds(Frame, TEXT, st.booleans()), max_size=4).map(tuple)
STACKS = st.lists(st.builds(FoldedStack, TEXT, FRAMES, st.integers(0, 10**18)), max_size=6)


def one_line(thread: str, *frames: Frame, count: int = 7) -> str:
    (line,) = export_stacks([FoldedStack(thread, frames, count)])
    return line


def test_thread_comes_first_and_kernel_frames_have_their_suffix() -> None:
    frames = [Frame("main"), Frame("read"), Frame("__x64_sys_write", is_kernel=True)]
    assert one_line("worker", *frames) == "worker;main;read;__x64_sys_write_[k] 7"


@pytest.mark.parametrize(
    "name",
    [
        "net/http.(*liveSwitchReader).Read",
        "(anonymous namespace)::foo(int, int)",
        "9c51fd34 java.lang.String.hashCode ([JIT app cache])",
        "A<B>&C",
        'Time::Moment::(""',
        "</script><img src=x onerror=alert(1)>",
        "<lambda>",
        "日本",
        "a|b",
    ],
)
def test_ordinary_names_stand_as_they_are(name: str) -> None:
    assert one_line("G1 Conc#0", Frame(name)) == f"G1 Conc#0;{name} 7"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("<[u64; 3] as arr::T>::go", r"<[u64\x3b 3] as arr::T>::go"),
        ("a\\b", r"a\x5cb"),
        ("a\nb", r"a\x0ab"),
        ("class@anonymous\0/srv/x.php:3", r"class@anonymous\x00/srv/x.php:3"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\udcc1x", r"\xc1x"),  # the byte c1 as surrogateescape keeps it
        ("\x9b31m", r"\u009b31m"),
        ("a\u202eb", r"a\u202eb"),
        ("f_[k]", r"f_[k\x5d"),
    ],
)
def test_what_would_break_the_text_is_escaped(name: str, text: str) -> None:
    assert one_line("t", Frame(name)) == f"t;{text} 7"
    assert import_text(one_line("t", Frame(name))).stacks == [FoldedStack("t", (Frame(name),), 7)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("main;f", "no count at the end"),
        ("main;f 1e3", "the count '1e3' is not a whole number of at most 19 digits"),
        ("main;f -3", "the count '-3' is not a whole number of at most 19 digits"),
        ("main;f 1.5", "the count '1.5' is not a whole number of at most 19 digits"),
        ("main;f ", "the count '' is not a whole number of at most 19 digits"),
        ("main;f ٣", "the count '٣' is not a whole number of at most 19 digits"),
        ("main;f\t3", "a tab where a space must stand before the count"),
        ("", "blank line"),
        (" 3", "no stack before the count"),
    ],
)
def test_a_rejected_line_is_counted_with_number_and_reason(line: str, reason: str) -> None:
    imported = import_text(f"main;a 2\r\n{line}\nmain;b 5\n")
    assert [stack.count for stack in imported.stacks] == [2, 5]
    assert [(r.line, r.reason) for r in imported.rejected] == [(2, reason)]


def test_many_rejected_lines_are_counted_and_the_first_kept() -> None:
    imported = import_text("broken\n" * 1009)
    assert imported.rejected_total == 1009
    assert len(imported.rejected) == 100


def test_a_tree_is_written_in_preorder() -> None:
    tree = weighed([(["main", "f;g"], 7), (["main"], 2), (["main", "f;g", "h"], 23)])
    tree.tree.table.codes[tree.tree.table.names.index("h")] = CodeKind.KERNEL
    lines = list(export_lines(join([Branch(tree, "worker")])))
    assert lines == ["worker;main 2", r"worker;main;f\x3bg 7", r"worker;main;f\x3bg;h_[k] 23"]


def test_a_stack_of_30000_frames_is_one_line() -> None:
    (line,) = export_lines(join([Branch(weighed([(["f", "g"] * 15_000, 23)]), "t")]))
    assert line.count(";") == 30_000
    assert line.endswith(" 23")


def test_no_stacks_make_no_lines() -> None:
    assert list(export_lines(weighed([]))) == []
    assert import_text("").stacks == []


@given(st.text(alphabet=st.characters(codec=None)))
@example("\\x5c")
@example("\\u202e")
def test_escapes_are_undone(text: str) -> None:
    assert unescape(escape(text)) == text


@given(STACKS)
@example([FoldedStack("", (), 0)])
@settings(deadline=None)
def test_import_of_export_is_the_same(stacks: list[FoldedStack]) -> None:
    kept = [stack for stack in stacks if stack.thread or stack.frames]  # a line cannot start with its count
    assert import_text("\n".join(export_stacks(kept))).stacks == kept
