# SPDX-License-Identifier: Apache-2.0
"""Where names come from: the closed list of origins, and an open file with its origin."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Origin(StrEnum):
    """Of a file that names are made from; the words are part of the API."""

    RUNNING_FILE = "file"
    """The binary itself, found on the server's host at the path it ran from."""
    DEBUG_ROOT = "debug-root"
    """A separate debug file below one of the configured directories."""
    AGENT = "agent"
    """Sent by an agent that was asked."""
    UPLOAD = "upload"
    """Sent by a person or a pipeline."""
    DEBUGINFOD = "debuginfod"
    """Had from one of the configured servers."""
    COMMON = "common"
    """The file into which dwz moved what several debug files share, from wherever it was had."""
    SPLIT = "split"
    """The .dwo and .dwp files into which a compiler split debug data, from wherever they were had."""


@dataclass(frozen=True, slots=True)
class Source:
    """An open file. The descriptor is the holder's to close."""

    origin: Origin
    descriptor: int
    place: str = ""
    """Which of several of one origin: the address of a debuginfod server."""


def close_all(sources: Iterable[Source]) -> None:
    """Close the files."""
    for source in sources:
        os.close(source.descriptor)
