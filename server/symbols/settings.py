# SPDX-License-Identifier: Apache-2.0
"""What the makers of names are told at their start."""

from dataclasses import dataclass
from pathlib import Path

from server.symbols.debuginfod import Upstream


@dataclass(frozen=True, slots=True)
class SymbolSettings:
    """Places and bounds."""

    directory: Path
    """Where table files and uploads lie; made when missing."""
    local_files: bool = True
    """Also read binaries on this host whose identity matches exactly, and debug files by build id."""
    debug_roots: tuple[Path, ...] = (Path("/usr/lib/debug"),)
    """Directories with .build-id/ab/cdef….debug inside."""
    table_max_bytes: int = 10 << 30
    """All table files together; the one that was used longest ago leaves first."""
    upload_max_bytes: int = 2 << 30
    """One upload, or one file from a debuginfod server."""
    upload_quota_bytes: int = 8 << 30
    """All unfinished uploads together."""
    files_max_bytes: int = 10 << 30
    """All files together that were sent and are kept to make better tables of."""
    upstreams: tuple[Upstream, ...] = ()
    """Debuginfod servers, in the order in which they are asked; none is asked when it is empty."""
    free_min_bytes: int = 10 << 30
    """Uploads and fetches stop when less than this is free, or less than a tenth of the disk if that is smaller."""
