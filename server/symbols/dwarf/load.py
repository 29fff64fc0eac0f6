# SPDX-License-Identifier: Apache-2.0
"""Takes the debug sections out of a file."""

from server.symbols.dwarf.source import DebugData
from server.symbols.elf import ElfFile
from server.symbols.elf_sections import SectionReader

_SECTIONS = {
    "info": ".debug_info",
    "abbreviations": ".debug_abbrev",
    "strings": ".debug_str",
    "line_strings": ".debug_line_str",
    "string_offsets": ".debug_str_offsets",
    "lines": ".debug_line",
    "addresses": ".debug_addr",
    "ranges": ".debug_ranges",
    "range_lists": ".debug_rnglists",
}


def has_debug_info(elf: ElfFile) -> bool:
    """Is there anything to read?"""
    reader = SectionReader(elf, [0])
    return reader.has(".debug_info") and reader.has(".debug_abbrev")


def load_debug_data(elf: ElfFile, budget: list[int]) -> DebugData:
    """All sections at once. Raises Refused when they are too big together or cannot be inflated."""
    return _load(elf, budget, "")


def load_split_data(elf: ElfFile, budget: list[int]) -> DebugData:
    """The same of a .dwo or .dwp file, whose sections have names of their own."""
    data = _load(elf, budget, ".dwo")
    data.is_split = True
    data.unit_index = SectionReader(elf, budget).read(".debug_cu_index")
    return data


def _load(elf: ElfFile, budget: list[int], suffix: str) -> DebugData:
    reader = SectionReader(elf, budget)
    data = DebugData("little" if elf.layout.byte_order == "<" else "big")
    for field, name in _SECTIONS.items():
        setattr(data, field, reader.read(name + suffix))
    return data
