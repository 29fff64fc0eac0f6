# SPDX-License-Identifier: Apache-2.0
"""Searches find text anywhere and regexes in linear time."""

import pytest

from server.query.complaint import QueryError
from server.query.regex import SearchMode, full_match, search


def test_text_is_found_whatever_its_case() -> None:
    finds = search("ParSE(", SearchMode.TEXT)
    assert finds("json::parse(int)")
    assert not finds("json::pars")
    assert search("STRASSE", SearchMode.TEXT)("straße")


def test_a_regex_is_found_anywhere_and_knows_unicode() -> None:
    finds = search("^j.*é$", SearchMode.REGEX)
    assert finds("json::é")
    assert not finds("xjson::é")
    assert search("^.$", SearchMode.REGEX)("日")


def test_a_full_match_is_of_the_whole() -> None:
    assert full_match("a|b")("b")
    assert not full_match("a|b")("ab")


@pytest.mark.parametrize("pattern", ["(", "[", "(?<=a)b", r"(a)\1", "a{1001}", "\\", "((a{1000}){1000}){1000}", "x" * 1001])
def test_what_re2_does_not_take_is_told(pattern: str) -> None:
    with pytest.raises(QueryError):
        search(pattern, SearchMode.REGEX)


def test_lone_surrogates_do_no_harm() -> None:
    assert not search("a", SearchMode.REGEX)("\udcff")
    assert not full_match("\udcff")("a")


def test_long_text_is_refused() -> None:
    with pytest.raises(QueryError, match="at most 1000"):
        search("x" * 1001, SearchMode.TEXT)
