# SPDX-License-Identifier: Apache-2.0
"""A histogram over time: counts by slot and bucket, and the quantiles of each slot."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from server.query.histogram import histogram, quantiles_ns, stacked
from server.query.profile_query import ProfileQuery
from server.query.selector import Selector
from server.query.slot_sums import slot_sums, with_quiet_slots
from server.query.slots import Slots


@dataclass(frozen=True, slots=True, eq=False)
class HeatMap:
    """Counts have shape (slots, buckets); quantiles are in ns, nan where nothing was counted."""

    kind: str
    slots: Slots
    counts: npt.NDArray[np.uint64]
    has_data: npt.NDArray[np.bool_]
    p50_ns: npt.NDArray[np.float64]
    p99_ns: npt.NDArray[np.float64]


def heatmap(query: ProfileQuery, selector: Selector, slots: Slots, buckets: str = "") -> HeatMap:
    """Answer how often a selector's events took how long, slot by slot. Raises QueryError for a kind without such a histogram."""
    names = histogram(query.choose(selector, slots.range).kind, buckets)
    sums = with_quiet_slots(query, selector, slot_sums(query, selector, slots, names))
    counts = stacked(sums.columns, names, sums.slots.count)
    return HeatMap(selector.kind, sums.slots, counts, sums.has_data, quantiles_ns(counts, 0.5), quantiles_ns(counts, 0.99))
