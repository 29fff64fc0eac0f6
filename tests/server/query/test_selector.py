# SPDX-License-Identifier: Apache-2.0
"""Selectors are read as PromQL's, and say where they are wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.query.complaint import QueryError
from server.query.selector import Matcher, Operator, check_names, parse_selector

LOOKS = 'a selector looks like cpu{service="checkout"}'


def matchers(text: str) -> list[tuple[str, str, str]]:
    return [(m.label, m.operator.value, m.value) for m in parse_selector(text).matchers]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("cpu", "cpu", []),
        ("cpu{}", "cpu", []),
        (" cpu { } ", "cpu", []),
        ('cpu{service="x"}', "cpu", [("service", "=", "x")]),
        ('offcpu{a="1",b!="2",c=~"3.*",d!~"4",}', "offcpu", [("a", "=", "1"), ("b", "!=", "2"), ("c", "=~", "3.*"), ("d", "!~", "4")]),
        ("cpu{ service = 'it\\'s' }", "cpu", [("service", "=", "it's")]),
        (r'cpu{v=~"2\\.4"}', "cpu", [("v", "=~", r"2\.4")]),
        (r"cpu{v=~`2\.4`}", "cpu", [("v", "=~", r"2\.4")]),
        (r'cpu{v="a\n\x41\u00e9\U0001F525"}', "cpu", [("v", "=", "a\nAé🔥")]),
        ('cpu{v="a,b}{=\\"c"}', "cpu", [("v", "=", 'a,b}{="c')]),
        ('cpu{v=""}', "cpu", [("v", "=", "")]),
    ],
)
def test_what_is_written_is_read(text: str, kind: str, expected: list[tuple[str, str, str]]) -> None:
    assert parse_selector(text).kind == kind
    assert matchers(text) == expected


@pytest.mark.parametrize(
    ("text", "position", "message", "hint"),
    [
        ("", 0, "expected a kind, for example cpu; found the end at character 1", ""),
        ('{service="x"}', 0, "the kind is missing; found '{' at character 1", 'write cpu{service="x"}'),
        ("cpu{service}", 11, "expected =, !=, =~ or !~ after service; found '}' at character 12", ""),
        ("cpu{service=x}", 12, "the value of service must stand in quotes; found 'x' at character 13", 'write service="x"'),
        ('cpu{service=="x"}', 12, "== is not an operator here; found '=' at character 13", 'write service="..."'),
        ('cpu{service="x}', 12, "the value of service has no closing \"; found '\"' at character 13", ""),
        ('cpu{a="1" b="2"}', 10, "expected , or } after a condition; found 'b' at character 11", LOOKS),
        ('cpu{a="1"', 9, "expected , or } after a condition; found the end at character 10", LOOKS),
        ("cpu{,}", 4, "expected a label, for example service; found ',' at character 5", ""),
        ("cpu{} + 1", 6, "nothing may follow the selector; found '+' at character 7", ""),
        (r'cpu{v="2\.4"}', 8, "this escape is not known; found '\\\\' at character 9",
         r"in regexes a backslash is written twice, or the string in backquotes: `2\.4`"),
        (r'cpu{v="\ud800"}', 7, "this escape is no character; found '\\\\' at character 8", ""),
        ('cpu{v=~"("}', 7, "the regex '(' is not valid: missing ): (", "regexes are RE2's: no look-around, no back-references"),
        ('cpu{v=~"(?=a)"}', 7, "the regex '(?=a)' is not valid: invalid perl operator: (?=",
         "regexes are RE2's: no look-around, no back-references"),
    ],
)  # fmt: skip
def test_a_mistake_is_shown_where_it_is(text: str, position: int, message: str, hint: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_selector(text)
    assert (caught.value.position, str(caught.value), caught.value.hint) == (position, message, hint)


def test_a_terminal_shows_a_caret() -> None:
    with pytest.raises(QueryError) as caught:
        parse_selector("cpu{service=x}")
    assert caught.value.in_lines().splitlines()[1:] == ["  cpu{service=x}", "              ^", 'write service="x"']


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ('cpu{a="1"}', {"a": "1"}, True),
        ('cpu{a="1"}', {"a": "12"}, False),
        ('cpu{a!="1"}', {}, True),
        ('cpu{a=""}', {}, True),
        ('cpu{a=~"1"}', {"a": "12"}, False),
        ('cpu{a=~"1.*"}', {"a": "12"}, True),
        ('cpu{a=~"x|1"}', {"a": "1y"}, False),
        ('cpu{a!~"1.*"}', {"a": "12"}, False),
        ('cpu{a=~".*"}', {"a": "a\nb"}, False),
        ('cpu{a="1",b="2"}', {"a": "1", "b": "3"}, False),
        ('cpu{a="%"}', {"a": "anything"}, False),
        ('cpu{a="a_c"}', {"a": "abc"}, False),
    ],
)
def test_series_are_matched_whole(text: str, labels: dict[str, str], expected: bool) -> None:
    assert parse_selector(text).test()(labels) is expected


def test_unknown_names_are_told_with_the_nearest() -> None:
    selector = parse_selector('cpu{servce="x"}')
    with pytest.raises(QueryError) as caught:
        check_names(selector, {"cpu"}, {"service", "host"})
    assert (str(caught.value), caught.value.hint, caught.value.position) == ("no series has a label 'servce'", "did you mean service?", 4)
    with pytest.raises(QueryError, match="there is no kind 'cpu'"):
        check_names(selector, {"lock", "tcp"}, ())
    check_names(selector, (), ())


def test_a_regex_bomb_ends() -> None:
    """With backtracking it would not."""
    matches = Matcher("a", Operator.MATCHES, "(a+)+$").test()
    assert not matches("a" * 50_000 + "!")


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_in_place(text: str) -> None:
    try:
        parse_selector(text)
    except QueryError as error:
        assert error.position is None or 0 <= error.position <= len(text)


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=20))
def test_any_value_can_be_asked_for(value: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    assert matchers(f'cpu{{v="{quoted}"}}') == [("v", "=", value)]
