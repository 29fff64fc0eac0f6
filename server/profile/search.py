# SPDX-License-Identifier: Apache-2.0
"""Search in names, over the whole tree and not only what is drawn; the share counts each stack once."""

from collections.abc import Callable

import numpy as np

from server.profile.nametable import NameTable
from server.profile.totals import Mask, WeighedTree, outermost


def match_names(table: NameTable, matches: Callable[[str], bool]) -> Mask:
    """Mask the names that match, by number; the root's is never matched."""
    hits = [matches(name) for name in table.names]
    for number, aliases in table.aliases.items():
        hits[number] = hits[number] or any(matches(alias) for alias in aliases)
    hits[0] = False
    return np.array(hits, np.bool_)


def value_of_matches(weighed: WeighedTree, matched_names: Mask, root: int = 0) -> int:
    """Add up the stacks of the view under `root` that have a matching frame in the view."""
    last = int(weighed.tree.end[root])
    matched = matched_names[weighed.tree.name[root:last]]
    return int(weighed.total[root:last][outermost(matched, weighed.tree.end, root)].sum())
