# SPDX-License-Identifier: Apache-2.0
"""The words of marks are those that marks.proto gives."""

import re
from pathlib import Path

from emberwatch.v1 import marks_pb2
from server.symbols.marks import mark_words

PROTO = Path(__file__).parents[3] / "proto/emberwatch/v1/marks.proto"


def test_every_mark_has_the_words_of_its_comment() -> None:
    words: dict[str, str] = {}
    text = ""
    for line in PROTO.read_text().splitlines():
        if found := re.match(r'\s*// "(\[[^"]+\])":', line):
            text = found[1]
        elif found := re.match(r"\s*(MARK_\w+) = [1-9]", line):
            words[found[1]] = text
    assert set(words) == set(marks_pb2.Mark.keys()) - {"MARK_UNSPECIFIED"}
    for name, text in words.items():
        assert mark_words(marks_pb2.Mark.Value(name)) == text


def test_a_mark_of_a_newer_agent_is_shown_by_number() -> None:
    assert mark_words(9999) == "[mark 9999]"
    assert mark_words(2**63) == f"[mark {2**63}]"
