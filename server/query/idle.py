# SPDX-License-Identifier: Apache-2.0
"""Waiting for work: what users of off-CPU tools drown in. Told apart, so that it can be hidden, and said how much of it there is.

Idle are rows of the classes poll and sleep, and pools of threads that stand on one stack and are hardly ever woken. A lock or a disk is
never taken for a pool: many threads on one of these are the very thing that is looked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from server.query.merge import Keep, KeyWeights, Mask, ServiceWeights
from server.query.row_filter import text_of, used_numbers
from server.store.protocol import KindInfo, ServiceDictionary

Numbers = npt.NDArray[np.int64]

IDLE_CLASSES = ("poll", "sleep")
ALIKE = "alike"
"""Pools of threads that stand on one stack."""
NEEDED = ("ns", "count")
"""Columns that a kind must have."""
_POOL_CLASSES = ("net", "pipe", "child", "other")
_FEWEST_ALIKE = 4.0
"""Threads of a host that stand on one stack in the mean."""
_LONG_NS = 1e9
"""Mean wait from which on a thread counts as not needed. Threads that wait for an answer come back sooner."""


class Idle(StrEnum):
    """What becomes of rows that wait for work."""

    SHOW = "show"
    HIDE = "hide"
    ONLY = "only"


@dataclass(frozen=True, slots=True)
class IdleShare:
    """How much of a selection waits for work, in the column of the answer."""

    total: int
    idle: int
    by: Mapping[str, int]
    """By class, and ALIKE."""


def add_idle(parts: Sequence[IdleShare]) -> IdleShare:
    """Add up those of parts of a selection."""
    by = {reason: sum(part.by.get(reason, 0) for part in parts) for part in parts for reason in part.by}
    return IdleShare(sum(part.total for part in parts), sum(part.idle for part in parts), by)


def can_be_idle(kind: KindInfo) -> bool:
    """Tell whether rows of a kind can wait for work."""
    names = {column.name for column in kind.columns}
    return kind.name == "offcpu" and names.issuperset(NEEDED)


def class_mask(dictionary: ServiceDictionary, classes: tuple[str, ...]) -> Mask:
    """Which keys are of one of the classes."""
    numbers = dictionary.key_classes
    is_one = np.zeros(len(dictionary.strings), np.bool_)
    is_one[[n for n in used_numbers(numbers, len(dictionary.strings)) if text_of(dictionary.strings[n]) in classes]] = True
    found: Mask = is_one[numbers]
    return found


def busy_keys(keep: Keep, idle: Idle) -> Keep:
    """Give the test that also leaves out what waits for work (or keeps that alone), as far as its class tells."""
    if idle is Idle.SHOW:
        return keep

    def kept(dictionary: ServiceDictionary) -> Mask:
        is_idle = class_mask(dictionary, IDLE_CLASSES)
        chosen = is_idle if idle is Idle.ONLY else ~is_idle
        others = keep(dictionary)
        return chosen if others is None else chosen & others

    return kept


def part(weights: KeyWeights, idle: Idle, column: str, hosts: int) -> tuple[KeyWeights, IdleShare]:
    """Give the rows that `idle` asks for, and how much waits for work. The columns of NEEDED must be among the weights'."""
    thread_ns = max(1, weights.end_unix_ns - weights.start_unix_ns) * max(1, hosts)
    total, by, services = 0, dict[str, int](), {}
    for name, service in weights.services.items():
        masks = _masks(service, thread_ns)
        total += service.totals[column]
        for reason, mask in masks.items():
            value = int(service.columns[column][mask].sum())
            if value:
                by[reason] = by.get(reason, 0) + value
        is_idle = np.logical_or.reduce(list(masks.values()))
        services[name] = service if idle is Idle.SHOW else _only(service, is_idle if idle is Idle.ONLY else ~is_idle)
    return replace(weights, services=services), IdleShare(total, sum(by.values()), by)


def _masks(service: ServiceWeights, thread_ns: int) -> dict[str, Mask]:
    """Keys that wait for work, each in one mask."""
    dictionary = service.dictionary
    masks = {name: class_mask(dictionary, (name,)) for name in IDLE_CLASSES}
    in_pools = np.flatnonzero(class_mask(dictionary, _POOL_CLASSES) & (service.columns["ns"] > 0))
    pool_of_key = _pools(dictionary, in_pools)
    ns, count = (np.bincount(pool_of_key, service.columns[name][in_pools]) for name in NEEDED)
    is_idle = (ns >= _FEWEST_ALIKE * thread_ns) & (ns >= _LONG_NS * np.maximum(count, 1))
    masks[ALIKE] = np.zeros(dictionary.sizes[2], np.bool_)
    masks[ALIKE][in_pools] = is_idle[pool_of_key]
    return masks


def _pools(dictionary: ServiceDictionary, keys: Numbers) -> Numbers:
    """Number the pools of some keys: of one stack, class and thread name, whoever wakes them."""
    names = dictionary.key_threads[keys].astype(np.int64) * len(dictionary.strings) + dictionary.key_classes[keys]
    kinds, kind_of_key = np.unique(names, return_inverse=True)
    return np.unique(dictionary.key_stacks[keys] * np.int64(len(kinds)) + kind_of_key, return_inverse=True)[1]


def _only(service: ServiceWeights, kept: Mask) -> ServiceWeights:
    columns = {name: np.where(kept, values, 0.0) for name, values in service.columns.items()}
    return replace(service, columns=columns, totals={name: int(values.sum()) for name, values in columns.items()})
