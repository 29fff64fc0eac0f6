# SPDX-License-Identifier: Apache-2.0
"""Where kernel code lies: the image, modules and BPF programs, as ranges that turn an address into a place.

Offsets of the image count from _text, those of a module from its lowest text symbol: that is the same on every host and after every
load, while the start of a section is not told to everyone. So places and names are independent of where the kernel was put (KASLR).
Ends are careful: a module ends with the page of its last symbol, since what lies behind has no certain name.
"""

import hashlib
import re
import time
from bisect import bisect_right
from collections.abc import Callable, Iterable

from agent.kernel.kallsyms import Kallsyms, Symbol, read_kallsyms
from agent.kernel.modules import ChangeSign, KernelSources, change_sign, kernel_build_id, live_modules, module_build_id
from agent.records.binary import Binary, BinaryId
from agent.records.kernel_layout import KernelLayout, KernelRange
from emberwatch.v1 import batch_pb2 as pb

_PAGE_BYTES = 4096
_MAX_PROGRAM_BYTES = 256 << 10
"""A BPF program ends with the next symbol, but not later than this."""
_BPF_OWNER = b"bpf"
_BUILTIN = b"__builtin__"
_PROGRAM = re.compile(rb"bpf_prog_([0-9a-f]{16})(?:_(.*))?", re.DOTALL)
_NUMBER_AT_END = re.compile(rb"_[0-9]+$")
_AGE_S, _AGE_UNTOLD_S = 600.0, 60.0
_MISS_PAUSE_S = 30.0
PROGRAMS_PAUSE_S = 60.0
_MISSES_MAX = 1024


class LayoutKeeper:
    """Keeps the layout up to date for little: kallsyms is read again when a module or a BPF program came or went, after some misses, and
    by age (sooner where the kernel does not tell of BPF programs)."""

    def __init__(self, sources: KernelSources | None = None, now_s: Callable[[], float] = time.monotonic) -> None:
        self._sources = sources or KernelSources()
        self._now_s = now_s
        self._sign = change_sign(self._sources)
        self._layout = read_layout(None, self._sources)
        self._read_s = now_s()
        self._missed: set[int] = set()
        self._has_new_miss = False

    def current(self) -> KernelLayout:
        """The layout now; call it once a window, before places are made of its addresses.

        A module that came or went is read at once. BPF programs may come and go all the time, and a reading costs 50 ms: theirs is put
        off until the last one is PROGRAMS_PAUSE_S old, and until then no program has a range, so that none has another's name.
        """
        sign = change_sign(self._sources)
        age_s = self._now_s() - self._read_s
        is_old = age_s >= (_AGE_S if sign.programs is not None else _AGE_UNTOLD_S)
        is_changed = sign.modules != self._sign.modules or (sign.programs != self._sign.programs and age_s >= PROGRAMS_PAUSE_S)
        if is_changed or is_old or (self._has_new_miss and age_s >= _MISS_PAUSE_S):
            self._sign = sign
            self._layout = read_layout(self._layout, self._sources)
            self._read_s = self._now_s()
            self._has_new_miss = False
        elif sign.programs != self._sign.programs:
            self._layout = _without_programs(self._layout)
        return self._layout

    def miss(self, addrs: Iterable[int]) -> None:
        """Kernel addresses that lay in no range. A page that was missed before is no news: reading again did not help."""
        pages = {addr // _PAGE_BYTES for addr in addrs} - self._missed
        if pages and len(self._missed) < _MISSES_MAX:
            self._missed |= pages
            self._has_new_miss = True


def read_layout(previous: KernelLayout | None, sources: KernelSources | None = None) -> KernelLayout:
    """Read the layout; `previous` itself when nothing changed."""
    sources = sources or KernelSources()
    # The sign is taken before kallsyms: a module that goes in between is then missing at worst, never named wrongly.
    sign = change_sign(sources)
    kallsyms = read_kallsyms(sources.kallsyms)
    ranges = () if kallsyms.is_hidden else _ranges(kallsyms, sources, sign)
    if previous is not None and previous.ranges == ranges and previous.is_hidden == kallsyms.is_hidden:
        return previous
    return KernelLayout(ranges, kallsyms.is_hidden, previous.generation + 1 if previous is not None else 0)


def _without_programs(layout: KernelLayout) -> KernelLayout:
    """The image and the modules; `layout` itself when there is nothing else."""
    ranges = tuple(found for found in layout.ranges if found.binary is not None)
    return layout if len(ranges) == len(layout.ranges) else KernelLayout(ranges, layout.is_hidden, layout.generation + 1)


def kallsyms_upload(binary: Binary, sources: KernelSources | None = None) -> bytes | None:
    """Symbols of the kernel or of a module in UPLOAD_FORMAT_KALLSYMS (symbols.proto); None when it is not loaded (any more).

    The bytes depend on the build alone, not on where it was loaded. kallsyms is read anew, since an upload is asked for once per build.
    """
    sources = sources or KernelSources()
    kallsyms = read_kallsyms(sources.kallsyms)
    if kallsyms.is_hidden:
        return None
    for found in _ranges(kallsyms, sources, change_sign(sources)):
        if found.binary is not None and (found.binary.kind, found.binary.id) == (binary.kind, binary.id):
            end = found.start + found.binary.size_bytes
            return _upload(kallsyms, found.name, found.start, end)
    return None


def _ranges(kallsyms: Kallsyms, sources: KernelSources, sign: ChangeSign) -> tuple[KernelRange, ...]:
    owned = kallsyms.owned()
    addrs = sorted({symbol.addr for symbol in owned})
    ranges = [*_image(kallsyms, sources), *_modules(kallsyms, owned, addrs, sources, live_modules(sign)), *_programs(owned, addrs)]
    ranges.sort(key=lambda found: found.start)
    # Ranges that overlap cannot both be right: neither is used.
    return tuple(
        found
        for index, found in enumerate(ranges)
        if (index == 0 or ranges[index - 1].end <= found.start) and (index + 1 == len(ranges) or found.end <= ranges[index + 1].start)
    )


def _image(kallsyms: Kallsyms, sources: KernelSources) -> Iterable[KernelRange]:
    image = kallsyms.image()
    if image is None:
        return
    kind, build_id = kernel_build_id(sources)
    content = b"" if build_id else _content_hash(kallsyms, b"", *image)
    yield KernelRange(*image, Binary(pb.BINARY_KIND_KERNEL, BinaryId(kind, build_id, content), b"", (), image[1] - image[0]), b"", 0)


def _modules(
    kallsyms: Kallsyms, owned: list[Symbol], addrs: list[int], sources: KernelSources, live: frozenset[bytes] | None
) -> Iterable[KernelRange]:
    text: dict[bytes, list[int]] = {}
    for symbol in owned:
        if symbol.is_text and symbol.owner != _BPF_OWNER and not symbol.owner.startswith(_BUILTIN):
            text.setdefault(symbol.owner, []).append(symbol.addr)
    for name, places in text.items():
        if live is not None and name not in live:
            continue
        start, last = min(places), max(places)
        end = (last // _PAGE_BYTES + 1) * _PAGE_BYTES
        kind, build_id = module_build_id(sources, name)
        content = b"" if build_id else _content_hash(kallsyms, name, start, end)
        binary = Binary(pb.BINARY_KIND_MODULE, BinaryId(kind, build_id, content), name, (), end - start)
        yield KernelRange(start, min(end, _next(addrs, last, end)), binary, name, 0)


def _programs(owned: list[Symbol], addrs: list[int]) -> Iterable[KernelRange]:
    seen: set[int] = set()
    for symbol in owned:
        if symbol.owner != _BPF_OWNER or not symbol.is_text or symbol.addr in seen:
            continue
        seen.add(symbol.addr)
        program = _PROGRAM.fullmatch(symbol.name)
        # Trampolines and dispatchers are numbered by objects of this boot; the number says nothing elsewhere.
        name = program[2] or b"" if program else _NUMBER_AT_END.sub(b"", symbol.name)
        end = _next(addrs, symbol.addr, symbol.addr + _MAX_PROGRAM_BYTES)
        yield KernelRange(symbol.addr, end, None, name, int(program[1], 16) if program else 0)


def _next(addrs: list[int], addr: int, limit: int) -> int:
    """The next symbol behind `addr`, but at most `limit`."""
    at = bisect_right(addrs, addr)
    return min(addrs[at], limit) if at < len(addrs) else limit


def _content_hash(kallsyms: Kallsyms, owner: bytes, start: int, end: int) -> bytes:
    """Stands for a build id where there is none: two modules without ids must not be taken for one."""
    return hashlib.blake2b(owner + b"\0" + _upload(kallsyms, owner, start, end), digest_size=16).digest()


def _upload(kallsyms: Kallsyms, owner: bytes, start: int, end: int) -> bytes:
    lines = [b"%x %s\n" % symbol for symbol in kallsyms.text_symbols(owner, start, end)]
    return b"".join(lines) + b"%x ! \n" % (end - start)
