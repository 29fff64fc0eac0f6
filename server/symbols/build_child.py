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

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import symbols_pb2
from server.symbols.build_job import Job, job_from_json
from server.symbols.build_result import BuildResult, BuildStatus, Refused
from server.symbols.elf import ElfFile
from server.symbols.elf_dynamic import dynamic_symbols
from server.symbols.identity import BinaryKey
from server.symbols.kallsyms import MAX_BYTES as MAX_KALLSYMS_BYTES
from server.symbols.kallsyms import parse_kallsyms
from server.symbols.notes import BuildIds
from server.symbols.plt import plt_symbols
from server.symbols.symtab import RawSymbols, Symbols, TooMany, choose, join
from server.symbols.table import Quality, TableFacts, Traits, table_bytes

NOBODY = 65_534
PR_SET_NO_NEW_PRIVS = 38
MEMORY_BYTES = 1 << 30
CPU_S = 20
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
        facts, symbols = _kernel_symbols(job) if job.format == symbols_pb2.UPLOAD_FORMAT_KALLSYMS else _elf_symbols(job)
        _write(job.output, table_bytes(facts, symbols))
        return BuildResult(BuildStatus.OK, symbols=len(symbols))
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
    size = os.fstat(job.sources[0]).st_size
    data = b"" if size > MAX_KALLSYMS_BYTES else os.pread(job.sources[0], size, 0)
    if size > MAX_KALLSYMS_BYTES:
        raise Refused(BuildStatus.LIMIT, f"kallsyms of {size} bytes, at most {MAX_KALLSYMS_BYTES} are read")
    return TableFacts(job.key, Quality.FULL, Traits.NONE), parse_kallsyms(data)


def _elf_symbols(job: Job) -> tuple[TableFacts, Symbols]:
    if job.key.counts_from_text:
        raise Refused(BuildStatus.UNSUPPORTED, "an ELF file for a kernel or module: their names come as kallsyms")
    tables: list[RawSymbols] = []
    quality, traits, code = Quality.EMPTY, Traits.NONE, None
    for descriptor in job.sources:
        elf = ElfFile(descriptor)
        ids = elf.section_build_ids() if elf.sections.size else elf.build_ids()
        _check_identity(job.key, ids)
        found, worth = elf.symbol_tables()
        if not elf.sections.size:
            found, worth = _symbols_by_segments(elf), Quality.DYNAMIC
        stubs = plt_symbols(elf)
        tables += found if stubs is None else [*found, stubs]
        quality, traits = max(quality, worth), traits | elf.traits(ids)
        code = elf.code() if code is None or not code.starts.size else code
    if code is None or not code.starts.size:
        raise Refused(BuildStatus.UNSUPPORTED, "no executable section or segment")
    return TableFacts(job.key, quality, traits), choose(join(tables), code)


def _symbols_by_segments(elf: ElfFile) -> list[RawSymbols]:
    extra = dynamic_symbols(elf)
    if extra is None and elf.has_broken_sections:
        raise Refused(BuildStatus.MALFORMED, "section headers cannot be read, and there are no dynamic symbols")
    return [] if extra is None else [extra]


def _check_identity(key: BinaryKey, ids: BuildIds) -> None:
    """The file must carry the id that it is filed under; one that is filed under none must carry none."""
    by_kind: dict[int, bytes] = {pb.BUILD_ID_KIND_GNU: ids.gnu, pb.BUILD_ID_KIND_GO: ids.go}
    found = by_kind.get(key.build_id_kind, ids.gnu or ids.go)
    if found != key.build_id:
        raise Refused(BuildStatus.MALFORMED, f"the file has build id {found.hex() or 'none'}, not {key.build_id.hex() or 'none'}")


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
