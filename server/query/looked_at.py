# SPDX-License-Identifier: Apache-2.0
"""Tells the namer what a question looks at while tables are being made, so that the names that are waited for come first."""

from collections.abc import Mapping

import numpy as np

from emberwatch.v1 import batch_pb2 as pb
from server.query.frame_names import Namer
from server.query.merge import KeyWeights, ServiceWeights
from server.store.protocol import Store

IN_BINARIES = (pb.PLACE_KIND_FILE, pb.PLACE_KIND_KERNEL, pb.PLACE_KIND_MODULE)


def look_at(weights: KeyWeights, column: str, namer: Namer, store: Store) -> frozenset[int]:
    """Have the binaries of an answer named first, the heaviest before others. Gives row ids of those that are being worked on.

    Costs nothing while no table is being made.
    """
    if not namer.pending():
        return frozenset()
    looked: dict[int, float] = {}
    for service in weights.services.values():
        for row_id, weight in _binaries(service, column).items():
            looked[row_id] = looked.get(row_id, 0.0) + weight
    infos = store.binaries(sorted(looked)) if looked else []
    return frozenset(namer.look_at([(info, looked[info.row_id]) for info in infos]))


def _binaries(service: ServiceWeights, column: str) -> Mapping[int, float]:
    """All binaries in the stacks of a service that weigh something, with what their innermost frames weigh."""
    dictionary, values = service.dictionary, service.columns[column]
    heavy = values > 0
    leaves = dictionary.key_stacks[heavy]
    found: dict[int, float] = {}
    nodes = np.unique(leaves)
    is_met = np.zeros(dictionary.node_parents.size, np.bool_)
    while nodes.size:
        is_met[nodes] = True
        above = np.unique(dictionary.node_parents[nodes])
        nodes = above[~is_met[above]]
    frames = np.unique(dictionary.node_frames[is_met])
    for row_id in np.unique(dictionary.frame_refs[frames[np.isin(dictionary.frame_kinds[frames], IN_BINARIES)]]).tolist():
        found[row_id] = 0.0
    frames = dictionary.node_frames[leaves]
    is_inside = np.isin(dictionary.frame_kinds[frames], IN_BINARIES)
    refs, place = np.unique(dictionary.frame_refs[frames[is_inside]], return_inverse=True)
    sums = np.bincount(place, values[heavy][is_inside], refs.size)
    return found | dict(zip(refs.tolist(), sums.tolist(), strict=True))
