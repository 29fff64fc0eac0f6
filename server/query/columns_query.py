# SPDX-License-Identifier: Apache-2.0
"""All columns of a kind over time, side by side: where each second of the threads went, bytes in and out, and what is like them."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.query.histogram import plain_columns
from server.query.profile_query import ProfileQuery
from server.query.selector import Selector
from server.query.slot_sums import slot_sums, with_quiet_slots
from server.query.slots import Slots
from server.store.protocol import ColumnInfo


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """One value a slot and column."""

    kind: str
    slots: Slots
    columns: tuple[ColumnInfo, ...]
    values: dict[str, npt.NDArray[np.uint64]]
    has_data: npt.NDArray[np.bool_]


def columns_over_time(query: ProfileQuery, selector: Selector, slots: Slots) -> Columns:
    """Answer every column but those of histograms, slot by slot. Raises as ProfileQuery.choose does."""
    infos = plain_columns(query.choose(selector, slots.range).kind)
    sums = with_quiet_slots(query, selector, slot_sums(query, selector, slots, [info.name for info in infos]))
    return Columns(selector.kind, sums.slots, tuple(infos), sums.columns, sums.has_data)
