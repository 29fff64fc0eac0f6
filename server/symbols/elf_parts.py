# SPDX-License-Identifier: Apache-2.0
"""Puts a table together out of ELF files: the binary, its debug file, the file that dwz moved common things to.

Names come from every symbol table there is; bounds of functions without a name from the unwind tables; inline chains and lines
from the first file with debug data. Debug data that is broken or too big costs chains and lines, never the names.
"""

import os
from dataclasses import dataclass

from emberwatch.v1 import batch_pb2 as pb
from server.symbols.build_job import Job
from server.symbols.build_result import BuildStatus, Quality, Refused, SplitName
from server.symbols.dwarf.load import has_debug_info, load_debug_data, load_split_data
from server.symbols.dwarf.naming import plain_name
from server.symbols.dwarf.read import Known, OutOfTime, ReadDebug, read_debug
from server.symbols.dwarf.source import DebugData
from server.symbols.eh_frame import function_bounds
from server.symbols.elf import ET_DYN, ET_EXEC, ET_REL, ElfFile
from server.symbols.elf_dynamic import dynamic_symbols
from server.symbols.elf_sections import MAX_INFLATED_BYTES, SectionReader
from server.symbols.identity import BinaryKey
from server.symbols.inlines import Inlines
from server.symbols.kernel_parts import from_text, kallsyms_of, text_start, with_listed
from server.symbols.notes import BuildIds
from server.symbols.pclntab import go_symbols
from server.symbols.plt import plt_symbols
from server.symbols.symtab import Ranges, RawSymbols, Symbols, choose, join
from server.symbols.table import TableFacts, Traits


@dataclass(frozen=True, slots=True)
class TableParts:
    """What a table file is made of."""

    facts: TableFacts
    symbols: Symbols
    inlines: Inlines | None = None
    debug_reason: str = ""
    missing: tuple[SplitName, ...] = ()
    """Units in .dwo files that were not given."""


@dataclass(frozen=True, slots=True)
class _Debug:
    """Inline chains and lines, and why some are missing although there is debug data."""

    inlines: Inlines | None = None
    reason: str = ""
    missing: tuple[SplitName, ...] = ()


def elf_parts(job: Job) -> TableParts:
    """Read all sources of a job. Raises Refused, TooMany."""
    tables: list[RawSymbols] = []
    quality, traits, code, bounds = Quality.EMPTY, Traits.NONE, None, None
    kinds = (ET_REL,) if job.key.kind == pb.BINARY_KIND_MODULE else (ET_EXEC, ET_DYN)
    files = [ElfFile(descriptor, kinds) for descriptor in job.sources]
    for elf in files:
        ids = elf.section_build_ids() if elf.sections.size else elf.build_ids()
        _check_identity(job.key, ids)
        found, worth = _symbol_tables(elf)
        tables += found
        quality, traits = max(quality, worth), traits | elf.traits(ids)
        code = elf.code() if code is None or not code.starts.size else code
        bounds = function_bounds(elf) if bounds is None else bounds
    if code is None or not code.starts.size:
        raise Refused(BuildStatus.UNSUPPORTED, "no executable section or segment")
    raw = join(tables)
    base = text_start(job.key.kind, raw, code) if job.key.counts_from_text else 0
    if job.kallsyms is not None:
        raw = with_listed(raw, kallsyms_of(job.kallsyms), base)
    symbols = choose(raw, code, bounds)
    debug = _debug(job, files, code, symbols) if job.with_debug_data else _Debug()
    inlines = debug.inlines
    if job.key.counts_from_text:
        symbols, inlines = from_text(symbols, base), None if inlines is None else inlines.shifted(-base)
    if inlines is not None and not debug.missing:
        quality = Quality.DWARF
    traits |= Traits.SPLIT if debug.missing else Traits.NONE
    return TableParts(TableFacts(job.key, quality, traits), symbols, inlines, debug.reason, debug.missing)


def _symbol_tables(elf: ElfFile) -> tuple[list[RawSymbols], Quality]:
    found, worth = elf.symbol_tables()
    if not elf.sections.size:
        found, worth = _symbols_by_segments(elf), Quality.DYNAMIC
    if worth < Quality.FULL and (mini := _mini_symbols(elf)):
        found, worth = [*found, *mini], Quality.MINI
    if worth < Quality.FULL and (names := go_symbols(elf)) is not None:
        found, worth = [*found, names], max(worth, Quality.DYNAMIC)
    stubs = plt_symbols(elf)
    return (found if stubs is None else [*found, stubs]), worth


def _mini_symbols(elf: ElfFile) -> list[RawSymbols]:
    """The symbol table inside .gnu_debugdata, whose file is a stripped-down copy of this one."""
    data = SectionReader(elf, [0]).mini_debug_info()
    if not data:
        return []
    descriptor = os.memfd_create("gnu_debugdata")
    try:
        os.write(descriptor, data)
        tables, worth = ElfFile(descriptor).symbol_tables()
        return tables if worth == Quality.FULL else []
    except Refused:
        return []
    finally:
        os.close(descriptor)


def _symbols_by_segments(elf: ElfFile) -> list[RawSymbols]:
    extra = dynamic_symbols(elf)
    if extra is None and elf.has_broken_sections:
        raise Refused(BuildStatus.MALFORMED, "section headers cannot be read, and there are no dynamic symbols")
    return [] if extra is None else [extra]


def _debug(job: Job, files: list[ElfFile], code: Ranges, symbols: Symbols) -> _Debug:
    budget = [MAX_INFLATED_BYTES]
    for elf in files:
        if not has_debug_info(elf):
            continue
        try:
            data = load_debug_data(elf, budget)
            if job.supplement is not None:
                data.supplement = load_debug_data(ElfFile(job.supplement, (ET_REL, ET_DYN)), budget)  # dwz makes it relocatable.
            read = read_debug(data, code, Known(symbols.starts[symbols.flags == 0], _folded(symbols)), _splits(job, budget))
        except Refused as refused:
            return _Debug(None, f"{refused.status}: {refused.reason}")
        except OutOfTime as error:
            return _Debug(None, f"{BuildStatus.LIMIT}: {error}")
        except MemoryError:
            return _Debug(None, f"{BuildStatus.LIMIT}: debug data needs too much memory")
        if read.inlines is None:
            return _Debug(None, f"{BuildStatus.MALFORMED}: no code in {read.units} units of debug data, {read.broken_units} broken")
        return _Debug(read.inlines, _lacks(read), read.missing)
    return _Debug()


def _splits(job: Job, budget: list[int]) -> list[DebugData]:
    """Debug data of the .dwo and .dwp files; one that is broken is as if it were not there."""
    found, place = [], 0
    for size in job.split_sizes if job.splits is not None else ():
        try:
            found.append(load_split_data(ElfFile(job.splits or 0, (ET_REL, ET_EXEC, ET_DYN), (place, size)), budget))
        except Refused as refused:
            if refused.status == BuildStatus.LIMIT:
                raise
        place += size
    return found


def _lacks(read: ReadDebug) -> str:
    """What of the debug data is not in the table; "" for nothing."""
    if read.broken_units:
        return f"{BuildStatus.MALFORMED}: {read.broken_units} units are broken"
    return f"{BuildStatus.UNSUPPORTED}: {len(read.missing)} units keep their calls in .dwo files that are not here" if read.missing else ""


def _folded(symbols: Symbols) -> dict[int, bytes]:
    """Names of symbols by start where a function of another name shares the code (identical code folding)."""
    found: dict[int, bytes] = {}
    bounds = zip(symbols.alias_bounds[:-1].tolist(), symbols.alias_bounds[1:].tolist(), strict=True)
    for symbol, (low, high) in zip(symbols.alias_symbols.tolist(), bounds, strict=True):
        name = symbols.name(symbol)
        if plain_name(symbols.alias_blob[low:high].tobytes().partition(b"@")[0]) != plain_name(name.partition(b"@")[0]):
            found[int(symbols.starts[symbol])] = name
    return found


def _check_identity(key: BinaryKey, ids: BuildIds) -> None:
    """The file must carry the id that it is filed under; one that is filed under none must carry none."""
    by_kind: dict[int, bytes] = {pb.BUILD_ID_KIND_GNU: ids.gnu, pb.BUILD_ID_KIND_GO: ids.go}
    found = by_kind.get(key.build_id_kind, ids.gnu or ids.go)
    if found != key.build_id:
        raise Refused(BuildStatus.MALFORMED, f"the file has build id {found.hex() or 'none'}, not {key.build_id.hex() or 'none'}")
