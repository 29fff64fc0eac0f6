# SPDX-License-Identifier: Apache-2.0
"""Names the service of processes that were gone before they were read, by what the kernel told of them while they lived.

The order is that of agent.process.service, without what only the process itself could have shown (its environment): container, systemd
unit, name of the exe. A fork is what its parent is, until it becomes another program.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from agent.process.cgroup import parse_cgroup
from agent.records.process import Origin, ProcessKey

_KEPT_MAX = 8192
"""As many as begin in a window of 10 s on a host with 400 new programs a second; 150 bytes each."""
_CGROUPS_MAX = 1024
_MEMORY = b"memfd:"
"""A file without a name in any folder."""


class Origins:
    """`path_of_cgroup` gives the path of a cgroup by its id, b"" when unknown."""

    def __init__(self, path_of_cgroup: Callable[[int], bytes]) -> None:
        self._path_of_cgroup = path_of_cgroup
        self._services: OrderedDict[ProcessKey, bytes] = OrderedDict()
        self._newest: OrderedDict[tuple[int, int], int] = OrderedDict()
        """Highest exec_id that was told of, by PID and start."""
        self._of_cgroup: OrderedDict[int, bytes] = OrderedDict()

    def note(self, origins: Iterable[Origin], service_of: Callable[[ProcessKey], bytes]) -> None:
        """Keep what was told. `service_of` answers for processes that were read, b"" for others.

        What was told first stands: in the middle of an exec the file is the next program's already, and the number the old one's still.
        """
        for key, parent, cgroup_id, exe in origins:
            process = key.pid, key.start_boot_ns
            self._newest[process] = max(key.exec_id, self._newest.get(process, 0))
            if key in self._services:
                continue
            of_parent = (service_of(parent) or self.service(parent)) if parent is not None else b""
            service = of_parent or self._by_cgroup(cgroup_id) or (b"" if exe.startswith(_MEMORY) else exe)
            if service:
                self._services[key] = service
        while len(self._services) > _KEPT_MAX:
            self._services.popitem(last=False)
        while len(self._newest) > _KEPT_MAX:
            self._newest.popitem(last=False)

    def is_another_by_now(self, key: ProcessKey) -> bool:
        """Whether the process was told of as a later program."""
        return self._newest.get((key.pid, key.start_boot_ns), 0) > key.exec_id

    def service(self, key: ProcessKey) -> bytes:
        """The service of a process, b"" when nothing was told of it, or long ago."""
        return self._services.get(key, b"")

    def _by_cgroup(self, cgroup_id: int) -> bytes:
        """The container or unit; ids are not given again."""
        known = self._of_cgroup.get(cgroup_id)
        if known is None:
            names = parse_cgroup(b"0::" + self._path_of_cgroup(cgroup_id))
            known = self._of_cgroup[cgroup_id] = names.container or names.unit
            if len(self._of_cgroup) > _CGROUPS_MAX:
                self._of_cgroup.popitem(last=False)
        return known
