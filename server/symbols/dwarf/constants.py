# SPDX-License-Identifier: Apache-2.0
"""The numbers of DWARF that are read here (DWARF 5, chapter 7; GNU's and MIPS' extensions by their registries)."""

from enum import IntEnum


class Tag(IntEnum):
    """Kinds of entries that hold code or lead to some."""

    CLASS_TYPE = 0x02
    LEXICAL_BLOCK = 0x0B
    COMPILE_UNIT = 0x11
    STRUCTURE_TYPE = 0x13
    UNION_TYPE = 0x17
    INLINED_SUBROUTINE = 0x1D
    MODULE = 0x1E
    CATCH_BLOCK = 0x25
    SUBPROGRAM = 0x2E
    TRY_BLOCK = 0x32
    NAMESPACE = 0x39
    PARTIAL_UNIT = 0x3C
    SKELETON_UNIT = 0x4A


class Attribute(IntEnum):
    """What is looked at; everything else is skipped."""

    SIBLING = 0x01
    NAME = 0x03
    STMT_LIST = 0x10
    LOW_PC = 0x11
    HIGH_PC = 0x12
    COMP_DIR = 0x1B
    ABSTRACT_ORIGIN = 0x31
    SPECIFICATION = 0x47
    RANGES = 0x55
    CALL_FILE = 0x58
    CALL_LINE = 0x59
    LINKAGE_NAME = 0x6E
    STR_OFFSETS_BASE = 0x72
    ADDR_BASE = 0x73
    RNGLISTS_BASE = 0x74
    DWO_NAME = 0x76
    MIPS_LINKAGE_NAME = 0x2007
    GNU_DWO_NAME = 0x2130
    GNU_DWO_ID = 0x2131
    GNU_RANGES_BASE = 0x2132
    GNU_ADDR_BASE = 0x2133


class Form(IntEnum):
    """How a value is written."""

    ADDR = 0x01
    BLOCK2 = 0x03
    BLOCK4 = 0x04
    DATA2 = 0x05
    DATA4 = 0x06
    DATA8 = 0x07
    STRING = 0x08
    BLOCK = 0x09
    BLOCK1 = 0x0A
    DATA1 = 0x0B
    FLAG = 0x0C
    SDATA = 0x0D
    STRP = 0x0E
    UDATA = 0x0F
    REF_ADDR = 0x10
    REF1 = 0x11
    REF2 = 0x12
    REF4 = 0x13
    REF8 = 0x14
    REF_UDATA = 0x15
    INDIRECT = 0x16
    SEC_OFFSET = 0x17
    EXPRLOC = 0x18
    FLAG_PRESENT = 0x19
    STRX = 0x1A
    ADDRX = 0x1B
    REF_SUP4 = 0x1C
    STRP_SUP = 0x1D
    DATA16 = 0x1E
    LINE_STRP = 0x1F
    REF_SIG8 = 0x20
    IMPLICIT_CONST = 0x21
    LOCLISTX = 0x22
    RNGLISTX = 0x23
    REF_SUP8 = 0x24
    STRX1 = 0x25
    STRX2 = 0x26
    STRX3 = 0x27
    STRX4 = 0x28
    ADDRX1 = 0x29
    ADDRX2 = 0x2A
    ADDRX3 = 0x2B
    ADDRX4 = 0x2C
    GNU_ADDR_INDEX = 0x1F01
    GNU_STR_INDEX = 0x1F02
    GNU_REF_ALT = 0x1F20
    GNU_STRP_ALT = 0x1F21


UNIT_REFERENCES = frozenset((Form.REF1, Form.REF2, Form.REF4, Form.REF8, Form.REF_UDATA))
SUPPLEMENT_REFERENCES = frozenset((Form.REF_SUP4, Form.REF_SUP8, Form.GNU_REF_ALT))
ADDRESS_INDEXES = frozenset((Form.ADDRX, Form.ADDRX1, Form.ADDRX2, Form.ADDRX3, Form.ADDRX4, Form.GNU_ADDR_INDEX))
STRING_INDEXES = frozenset((Form.STRX, Form.STRX1, Form.STRX2, Form.STRX3, Form.STRX4, Form.GNU_STR_INDEX))
LEB_FORMS = frozenset(
    (Form.SDATA, Form.UDATA, Form.REF_UDATA, Form.STRX, Form.ADDRX, Form.LOCLISTX, Form.RNGLISTX, Form.GNU_ADDR_INDEX, Form.GNU_STR_INDEX)
)

OWN_SIZES: dict[int, int] = {
    Form.DATA1: 1,
    Form.DATA2: 2,
    Form.DATA4: 4,
    Form.DATA8: 8,
    Form.FLAG: 1,
    Form.REF1: 1,
    Form.REF2: 2,
    Form.REF4: 4,
    Form.REF8: 8,
    Form.FLAG_PRESENT: 0,
    Form.REF_SUP4: 4,
    Form.DATA16: 16,
    Form.REF_SIG8: 8,
    Form.IMPLICIT_CONST: 0,
    Form.REF_SUP8: 8,
    Form.STRX1: 1,
    Form.STRX2: 2,
    Form.STRX3: 3,
    Form.STRX4: 4,
    Form.ADDRX1: 1,
    Form.ADDRX2: 2,
    Form.ADDRX3: 3,
    Form.ADDRX4: 4,
}
"""Sizes in bytes of forms that are always of one size."""

OFFSET_SIZED = frozenset((Form.STRP, Form.SEC_OFFSET, Form.STRP_SUP, Form.LINE_STRP, Form.GNU_REF_ALT, Form.GNU_STRP_ALT))
"""Forms as wide as offsets of the unit: 4 bytes, or 8 in 64-bit DWARF."""
