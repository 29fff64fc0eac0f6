# SPDX-License-Identifier: Apache-2.0
"""The table of functions: sorted, searched, cut to the first rows."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from server.profile.calltree import Indices
from server.profile.search import match_names
from server.profile.top import function_values
from server.profile.totals import Values
from server.query.profile_query import Profile


class SortBy(StrEnum):
    """Which column is in falling order."""

    SELF = "self"
    TOTAL = "total"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The first rows as columns; `name` numbers the names of the profile's tree."""

    name: Indices
    own: Values
    total: Values
    rows_total: int
    """Before it was cut."""


def table(profile: Profile, sort: SortBy, limit: int, matches: Callable[[str], bool] | None = None) -> Table:
    """Give the table of a profile. Equal rows stand in the order of their names."""
    weighed = profile.weighed
    values = function_values(weighed, profile.first_calls())
    names, own, total = values.name, values.own, values.total
    if matches is not None:
        chosen = match_names(weighed.tree.table, matches)[names]
        names, own, total = names[chosen], own[chosen], total[chosen]
    first, second = (own, total) if sort is SortBy.SELF else (total, own)
    texts = np.array([weighed.tree.table.names[n] for n in names.tolist()], object)
    by_name = np.argsort(texts, kind="stable") if texts.size else np.zeros(0, np.intp)
    order = by_name[np.lexsort((-second[by_name], -first[by_name]))][:limit]
    return Table(names[order], own[order], total[order], int(names.size))
