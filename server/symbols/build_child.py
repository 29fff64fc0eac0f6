# SPDX-License-Identifier: Apache-2.0
"""Makes one table inside a jail: `python -m server.symbols.build_child JOB`, started by server/symbols/builder.py.

JOB is a JSON object: descriptors of the sources and of the table file to fill, the identity that is claimed, what the sources
are. Before the first foreign byte is read the process gives up its rights and bounds its memory, time, file size and
descriptors. It opens nothing by name. The answer is one BuildResult on standard output.
"""

import ctypes
import os
import resource
import sys

from emberwatch.v1 import symbols_pb2
from server.symbols.build_job import Job, job_from_json
from server.symbols.build_result import BuildResult, BuildStatus, Quality, Refused
from server.symbols.elf_parts import TableParts, elf_parts
from server.symbols.kernel_parts import kallsyms_of
from server.symbols.symtab import Symbols, TooMany
from server.symbols.table import TableFacts, Traits, table_bytes

NOBODY = 65_534
PR_SET_NO_NEW_PRIVS = 38
MEMORY_BYTES = 1 << 30
CPU_S = 60
FILE_BYTES = 1 << 30
OPEN_FILES = 16


def enter_jail() -> None:
    """Give up rights and set bounds; nothing that is imported later would be found."""
    limits = (
        (resource.RLIMIT_AS, MEMORY_BYTES),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    )
    for limit, most in limits:
        _, hard = resource.getrlimit(limit)
        bound = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(limit, (bound, bound))
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")


def build(job: Job) -> BuildResult:
    """Make the table. Whatever the input holds, this returns one of the four ends."""
    try:
        is_list = job.format == symbols_pb2.UPLOAD_FORMAT_KALLSYMS
        parts = TableParts(*_kernel_symbols(job)) if is_list else elf_parts(job)
        _write(job.output, table_bytes(parts.facts, parts.symbols, parts.inlines))
        symbols, has_lines = len(parts.symbols), parts.inlines is not None
        return BuildResult(BuildStatus.OK, "", symbols, parts.facts.quality, parts.debug_reason, parts.missing, has_lines)
    except Refused as refused:
        return BuildResult(refused.status, refused.reason)
    except TooMany as error:
        return BuildResult(BuildStatus.LIMIT, str(error))
    except MemoryError:
        return BuildResult(BuildStatus.LIMIT, f"needs more than {MEMORY_BYTES >> 20} MiB of memory")
    except Exception as error:  # noqa: BLE001 -- hostile input; the jail ends here and the reason is kept
        return BuildResult(BuildStatus.MALFORMED, f"{type(error).__name__}: {error}")


def _kernel_symbols(job: Job) -> tuple[TableFacts, Symbols]:
    if not job.key.counts_from_text:
        raise Refused(BuildStatus.UNSUPPORTED, "kallsyms for a binary that is neither the kernel nor a module")
    return TableFacts(job.key, Quality.FULL, Traits.NONE), kallsyms_of(job.sources[0])


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def main() -> None:
    """Do the job of the first argument."""
    job = job_from_json(sys.argv[1])
    enter_jail()
    os.write(1, build(job).to_json())


if __name__ == "__main__":
    main()
