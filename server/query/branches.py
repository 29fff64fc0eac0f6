# SPDX-License-Identifier: Apache-2.0
"""Lays the rows of a service on trees: by their stacks, by their second stacks, or by both; a tree for each thread or object if asked."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from server.profile.calltree import Indices
from server.profile.join import Branch
from server.profile.mirror import Pairs, mirrored
from server.profile.totals import WeighedTree, weigh
from server.query.merge import ServiceWeights
from server.query.row_filter import label_numbers, text_of
from server.query.trees import ServiceTree
from server.store.protocol import ServiceDictionary

_NAMELESS = {"thread": "[no thread name]", "object": "[no object]", "class": "[no class]"}


class Stacks(StrEnum):
    """Which stacks a graph is made of."""

    FIRST = "first"
    """The row's own."""
    SECOND = "second"
    """Who woke it, or held what it waited for; rows without one are the root's."""
    BOTH = "both"
    """The own stack, and mirrored below its leaf the second one (server.profile.mirror)."""


@dataclass(frozen=True, slots=True)
class Laid:
    """How rows are laid."""

    column: str
    stacks: Stacks = Stacks.FIRST
    separator: str = ""
    """The mark between the stacks of BOTH."""


def separator(kind: str) -> str:
    """Say what the second stack of a kind's rows did."""
    return {"offcpu": "[woken by]", "runqueue": "[woken by]", "lock": "[held by]"}.get(kind, "[then]")


def branches_of(tree: ServiceTree, service: ServiceWeights, laid: Laid, label: str) -> Iterator[Branch]:
    """Give the trees of a service's rows, one for each value of a row label, "" for one of all."""
    if not label:
        yield Branch(_lay(tree, service, laid, np.arange(service.dictionary.sizes[2])))
        return
    keys = np.flatnonzero(service.columns[laid.column])
    for name, members in row_groups(service.dictionary, keys, label):
        yield Branch(_lay(tree, service, laid, keys[members]), name)


def row_groups(dictionary: ServiceDictionary, keys: Indices, label: str) -> Iterator[tuple[str, Indices]]:
    """Give each value of a row label with the places in `keys` that have it; bytes that are not UTF-8 stand as \\xNN."""
    for number, members in groups(label_numbers(dictionary, label)[keys]):
        yield text_of(dictionary.strings[number]) or _NAMELESS[label], members


def groups(numbers: npt.NDArray[np.uint32]) -> Iterator[tuple[int, Indices]]:
    """Give each distinct number with the places it stands at."""
    order = np.argsort(numbers, kind="stable")
    bounds = np.flatnonzero(np.diff(numbers[order])) + 1
    for members in np.split(order, bounds):
        if members.size:
            yield int(numbers[members[0]]), members


def _lay(tree: ServiceTree, service: ServiceWeights, laid: Laid, keys: Indices) -> WeighedTree:
    dictionary, values = service.dictionary, service.columns[laid.column][keys]
    first, second = tree.nodes[dictionary.key_stacks[keys]], tree.nodes[dictionary.key_seconds[keys]]
    if laid.stacks is not Stacks.BOTH:
        return weigh(tree.tree, first if laid.stacks is Stacks.FIRST else second, values)
    some = np.flatnonzero(values)
    return mirrored(tree.tree, Pairs(first[some], second[some], values[some].astype(np.int64)), laid.separator)
