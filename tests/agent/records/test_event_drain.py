# SPDX-License-Identifier: Apache-2.0
"""Rows of event kinds."""

import numpy as np

from agent.records.event_drain import BUCKETS, histogram_columns
from emberwatch.v1 import batch_pb2 as pb


def test_a_histogram_is_a_column_a_bucket() -> None:
    buckets = np.zeros((2, BUCKETS), np.uint32)
    buckets[1, 7] = 23
    columns = histogram_columns(buckets, "rtt")
    assert [column.name for column in columns][::31] == ["rtt_00", "rtt_31"]
    assert columns[7].values.tolist() == [0, 23]
    assert {column.merge for column in columns} == {pb.MERGE_HISTOGRAM}
