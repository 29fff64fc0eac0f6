# SPDX-License-Identifier: Apache-2.0
"""Wait classes that the config shows as others for a service: a worker whose `net` is a connection that it gets its work by waits for work.

Rows of offcpu change their class, and columns of time are moved, so that the whole stays what it was. All of a service's changes apply to
the classes as they were found, none to what another one made: `net=poll` and `poll=net` swap two.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agent.collect.kind_rows import KindRows
from agent.collect.ragged import Index
from agent.records.event_drain import EventColumn

OFFCPU_KIND, TIME_KIND = "offcpu", "time"


@dataclass(frozen=True, slots=True)
class ClassOverrides:
    """What the config says; empty for most."""

    by_service: Mapping[bytes, Mapping[bytes, bytes]] = field(default_factory=dict)
    """Of each service named: the class that was found, and the one it is shown as."""

    def name(self, service: bytes, wait_class: bytes) -> bytes:
        """The class that a wait of a service is shown as."""
        changed = self.by_service.get(service)
        return wait_class if changed is None else changed.get(wait_class, wait_class)

    def columns(self, kind: KindRows, services: Sequence[bytes], service_of_row: Index) -> tuple[EventColumn, ...]:
        """Give the columns of a kind as they are shown; `service_of_row` is an index into `services`."""
        changed = [number for number, service in enumerate(services) if service in self.by_service]
        if kind.kind != TIME_KIND or not changed:
            return kind.columns
        before = {column.name: column.values for column in kind.columns}
        after = {name: values.copy() for name, values in before.items()}
        for number in changed:
            rows = np.flatnonzero(service_of_row == number)
            for found, shown in self.by_service[services[number]].items():
                moved = before[_column(found)][rows]
                after[_column(found)][rows] -= moved
                after[_column(shown)][rows] += moved
        return tuple(replace(column, values=after[column.name]) for column in kind.columns)


def _column(wait_class: bytes) -> str:
    return f"{wait_class.decode()}_ns"
