# SPDX-License-Identifier: Apache-2.0
"""Selectors made here, with the text a person would write."""

import json

from server.query.selector import Matcher, Operator, Selector


def cpu_selector(**labels: str) -> Selector:
    """CPU of the series whose labels are these."""
    matchers = tuple(Matcher(label, Operator.EQUAL, value) for label, value in labels.items())
    conditions = ",".join(f"{label}={json.dumps(value, ensure_ascii=False)}" for label, value in labels.items())
    return Selector("cpu", matchers, f"cpu{{{conditions}}}")
