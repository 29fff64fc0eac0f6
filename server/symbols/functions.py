# SPDX-License-Identifier: Apache-2.0
"""Numbers functions as they are met and freezes them as a FunctionTable."""

import numpy as np

from server.profile.names import CodeKind, FunctionTable

UNNAMED = 0
"""Row 0: what the empty frame and frames of kinds from the future are."""
MOST_BUILDS = 8
"""Build ids kept of one function: those met last."""


class FunctionNumbers:
    """Functions by (name, binary); numbers only grow. Not safe for several threads."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str, str], int] = {}
        self._names: list[str] = []
        self._raw_names: list[str] = []
        self._binaries: list[str] = []
        self._codes: list[int] = []
        self._is_named: list[bool] = []
        self._aliases: list[tuple[str, ...]] = []
        self._builds: list[tuple[str, ...]] = []
        self._frozen: FunctionTable | None = None
        self.number("[unknown]", "", CodeKind.UNKNOWN, is_named=False)

    def number(  # noqa: PLR0913 -- a row has these columns
        self, name: str, binary: str, code: CodeKind, *, raw_name: str | None = None, is_named: bool = True, aliases: tuple[str, ...] = ()
    ) -> int:
        """The row of a function; a new one when it was not met before."""
        known = self._numbers.get((name, binary))
        if known is not None:
            return known
        number = len(self._names)
        self._numbers[name, binary] = number
        self._names.append(name)
        self._raw_names.append(name if raw_name is None else raw_name)
        self._binaries.append(binary)
        self._codes.append(code)
        self._is_named.append(is_named)
        self._aliases.append(aliases)
        self._builds.append(())
        return number

    def met_in(self, number: int, build: str) -> None:
        """Note that a function is in this build of its binary; "" when that is not known."""
        builds = self._builds[number]
        if build and build not in builds:
            self._builds[number] = (*builds, build)[-MOST_BUILDS:]
            self._frozen = None

    def freeze(self) -> FunctionTable:
        """All functions so far, in lists of their own; the same object as long as nothing was added."""
        count = len(self._names)
        if self._frozen is None or len(self._frozen) != count:
            self._frozen = FunctionTable(
                list(self._names),
                list(self._raw_names),
                list(self._binaries),
                np.array(self._codes, np.uint8),
                np.array(self._is_named, np.bool_),
                [""] * count,
                np.zeros(count, np.int32),
                list(self._aliases),
                list(self._builds),
            )
        return self._frozen
