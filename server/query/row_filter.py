# SPDX-License-Identifier: Apache-2.0
"""Which rows a selector means beyond its series: by wait class, object and thread (server.query.selector.ROW_LABELS)."""

from collections.abc import Callable

import numpy as np

from server.query.merge import Keep, Mask, keep_all
from server.query.selector import Selector
from server.store.protocol import U32, ServiceDictionary


def label_numbers(dictionary: ServiceDictionary, label: str) -> U32:
    """Give the number of the string that each key has for a row label."""
    return {"class": dictionary.key_classes, "object": dictionary.key_objects, "thread": dictionary.key_threads}[label]


def text_of(raw: bytes) -> str:
    """Show a name: bytes that are not UTF-8 as \\xNN."""
    return raw.decode("utf-8", "backslashreplace")


def used_numbers(numbers: U32, count: int) -> list[int]:
    """Give the distinct numbers, all below `count`, ascending."""
    is_used = np.zeros(count, np.bool_)
    is_used[numbers] = True
    return np.flatnonzero(is_used).tolist()


def keep_of(selector: Selector) -> Keep:
    """Give the test of keys that a selector's conditions on rows make."""
    tests = [(matcher.label, matcher.test()) for matcher in selector.of_rows]
    if not tests:
        return keep_all

    def keep(dictionary: ServiceDictionary) -> Mask | None:
        kept = np.ones(dictionary.sizes[2], np.bool_)
        for label, matches in tests:
            kept &= _matching(dictionary, label, matches)
        return kept

    return keep


def _matching(dictionary: ServiceDictionary, label: str, matches: Callable[[str], bool]) -> Mask:
    numbers, strings = label_numbers(dictionary, label), dictionary.strings
    is_match = np.zeros(len(strings), np.bool_)
    is_match[[n for n in used_numbers(numbers, len(strings)) if matches(text_of(strings[n]))]] = True
    matched: Mask = is_match[numbers]
    return matched
