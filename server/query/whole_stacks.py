# SPDX-License-Identifier: Apache-2.0
"""Which share of each service's time has its stack from leaf to root. Only marks are looked at, so neither names nor trees are made."""

import numpy as np
import numpy.typing as npt

from server.errors import LimitExceeded
from server.profile.nametable import BROKEN, mark_flags
from server.query.kinds import DEFAULT_KIND, width_column
from server.query.merge import MergeBudget, Meter, ServiceWeights, key_weights
from server.query.path_marks import bits_of_paths
from server.query.quality import share
from server.query.timerange import TimeRange
from server.store.protocol import Selection, ServiceDictionary, Store

BUDGET = MergeBudget(rows=2_000_000, seconds=2.0)
"""A table of services must come at once; beyond this it comes without the figure."""


def whole_shares(store: Store, span: TimeRange, budget: MergeBudget = BUDGET) -> dict[str, float]:
    """By service; empty when there is nothing, or more than the budget allows."""
    kind = next((kind for kind in store.kinds() if kind.name == DEFAULT_KIND), None)
    if kind is None or not kind.columns:
        return {}
    column = width_column(kind).name
    selection = Selection(kind.name, span.from_unix_ns, span.until_unix_ns, None, (column,))
    try:
        weights = key_weights(store, selection, (column,), Meter(budget))
    except LimitExceeded:
        return {}  # The page shows a dash.
    return {service: _whole_share(found, column) for service, found in weights.services.items() if found.totals[column]}


def _whole_share(found: ServiceWeights, column: str) -> float:
    is_whole = ~broken_nodes(found.dictionary)[found.dictionary.key_stacks]
    return share(float(found.columns[column][is_whole].sum()), found.totals[column])


def broken_nodes(dictionary: ServiceDictionary) -> npt.NDArray[np.bool_]:
    """For each node, whether a mark of a missing part stands on its path."""
    is_broken: npt.NDArray[np.bool_] = bits_of_paths(dictionary, mark_flags) & int(BROKEN) != 0
    return is_broken
