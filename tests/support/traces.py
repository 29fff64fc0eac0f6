# SPDX-License-Identifier: Apache-2.0
"""Synthetic windows that look like real programs, the same for one seed on every machine.

A program is a layered graph of functions in a few binaries. A sample walks from the thread's entry down call sites, whose
popularity falls off by a power law, to an instruction; a quarter ends in a system call with kernel frames below. Programs begin
alike and fan out late, so stacks share callers; distinct stacks have heavy-tailed counts because popular paths repeat.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.records.binary import Binary
from agent.records.drain import CPU_KEY, CpuDrain, Stacks, TickAccount
from agent.records.kernel_layout import KernelLayout, KernelRange
from agent.records.process import Fate, MappedBinary, Mapping, MappingKind, Process, ProcessKey
from tests.support.drains import PERIOD_NS, elf, kernel_binary

Index = npt.NDArray[np.int64]
U64 = npt.NDArray[np.uint64]

_Matrices = dict[str, npt.NDArray[Any]]
_Part = tuple[npt.NDArray[Any], U64, _Matrices]
"""Row keys, counts, and the stacks that the keys name, as matrices of addresses root first."""

_SITES = 8
"""Call sites of a function."""
_HOT_SPOTS = 24
"""Instructions of a function that are ever sampled."""
_MOST_FRAMES = 64
_KERNEL_BASE = 0xFFFF_FFFF_8100_0000
_KERNEL_BYTES = 24 << 20


@dataclass(frozen=True, slots=True)
class TraceShape:
    """How large a trace is."""

    rows: int = 200_000
    """Distinct (service, thread, stack)."""
    services: int = 8
    processes: int = 8
    """Spread over the services; more than there are services means that some run twice, in one place of memory."""
    functions: int = 4000
    """Of each program."""
    seed: int = 7


@dataclass(frozen=True, slots=True)
class Trace:
    """A window and all that its addresses need."""

    drain: CpuDrain
    processes: dict[ProcessKey, Process]
    layout: KernelLayout

    @property
    def find(self) -> Callable[[ProcessKey], Process]:
        """What WindowBuilder asks."""
        return self.processes.__getitem__


@dataclass(frozen=True, slots=True)
class _Program:
    """Functions by number; sites and spots are addresses."""

    callees: Index
    sites: U64
    spots: U64
    is_straight: npt.NDArray[np.bool_]
    """Functions that always go the same way."""
    stop_chance: npt.NDArray[np.float64]
    mappings: tuple[MappedBinary, ...]


def trace_of(shape: TraceShape) -> Trace:
    """Make a trace of exactly `shape.rows` distinct rows."""
    random = np.random.default_rng(shape.seed)
    kernel = _program(random, 1500, layers=14, depth=7, spans=[(_KERNEL_BASE, _KERNEL_BYTES, None)])
    weights = 1 / np.arange(1, shape.services + 1)
    quotas = np.maximum(1, (shape.rows * weights / weights.sum()).astype(int))
    quotas[0] += shape.rows - quotas.sum()
    processes: dict[ProcessKey, Process] = {}
    parts = []
    for service, quota in enumerate(quotas.tolist()):
        program = _program(random, shape.functions, layers=60, depth=26, spans=_spans(service))
        keys = [ProcessKey(1000 + pid, 77_000 + pid, 1) for pid in range(service, shape.processes, shape.services)]
        for key in keys:
            processes[key] = Process(key, Fate.ALIVE, f"service-{service}".encode(), b"1.0", program.mappings, None, 1)
        parts.append(_rows(random, (program, kernel), keys, quota))
    layout = KernelLayout((KernelRange(_KERNEL_BASE, _KERNEL_BASE + _KERNEL_BYTES, kernel_binary(), b"", 0),), False, 1)
    return Trace(_drain(parts), processes, layout)


def with_counts(trace: Trace, seed: int) -> Trace:
    """The same rows with their counts dealt out anew: the next window of the same programs."""
    counts = np.random.default_rng(seed).permutation(trace.drain.counts)
    return Trace(_with_counts(trace.drain, counts), trace.processes, trace.layout)


def _with_counts(drain: CpuDrain, counts: U64) -> CpuDrain:
    ticks = TickAccount(int(counts.sum()), 0, 0, {})
    return CpuDrain(drain.start_ns, drain.end_ns, drain.period_ns, drain.keys, counts, drain.stacks, ticks)


def _spans(service: int) -> list[tuple[int, int, Binary | None]]:
    """(start, size, binary) of the code of one program: its own, and six libraries that all share."""
    own = elf(f"service-{service}")
    shared = [elf(f"library-{number}") for number in range(6)]
    sizes = [12 << 20, 2 << 20, 1 << 20, 3 << 20, 600 << 10, 200 << 10, 1 << 20]
    return [
        (0x5500_0000_0000 + (index << 32), size, binary) for index, (size, binary) in enumerate(zip(sizes, [own, *shared], strict=True))
    ]


def _program(
    random: np.random.Generator, functions: int, *, layers: int, depth: int, spans: list[tuple[int, int, Binary | None]]
) -> _Program:
    """Draw a graph. Functions of layer i call those of layers i + 1 and i + 2, mostly in their own binary; `depth` is the mean depth."""
    layer = np.sort(random.integers(0, layers, functions))
    layer[0] = 0
    first_of_layer = np.searchsorted(layer, np.arange(layers + 3))
    low, high = first_of_layer[layer + 1], np.maximum(first_of_layer[layer + 1] + 1, first_of_layer[layer + 3])
    callees = low[:, None] + (random.random((functions, _SITES)) ** 2 * (high - low)[:, None]).astype(np.int64)
    callees = np.minimum(callees, functions - 1)
    span = random.choice(len(spans), functions, p=_power(len(spans), 1.0))
    starts = np.array([start for start, _, _ in spans], np.uint64)[span]
    limits = np.array([size for _, size, _ in spans])[span]
    sizes = random.lognormal(5.5, 1.0, functions).clip(32, 8000).astype(np.int64)
    function_start = starts + ((random.random(functions) * (limits - 8192)).astype(np.uint64) & ~np.uint64(15))
    sites = function_start[:, None] + (random.random((functions, _SITES)) * sizes[:, None]).astype(np.uint64)
    spots = function_start[:, None] + (random.random((functions, _HOT_SPOTS)) * sizes[:, None]).astype(np.uint64)
    stop = np.where(layer < depth // 3, 0.0, np.minimum(1.0, 1.6 * (layer / depth) ** 4 / depth * 4))
    stop[low >= functions - 1] = 1.0
    mappings = tuple(
        MappedBinary(Mapping(start, start + size, 0x1000, (8, 1), 7, binary.path), MappingKind.FILE, binary)
        for start, size, binary in spans
        if binary is not None
    )
    return _Program(callees, sites, spots, random.random(functions) < 0.7, stop, mappings)


def _power(count: int, exponent: float) -> npt.NDArray[np.float64]:
    weights = np.arange(1, count + 1) ** -exponent
    return np.asarray(weights / weights.sum())


def _walks(random: np.random.Generator, program: _Program, entries: Index) -> tuple[U64, Index]:
    """Walk from each entry to an instruction. Answers addresses root first, one walk a row, and the number of frames of each."""
    addresses = np.zeros((len(entries), _MOST_FRAMES), np.uint64)
    lengths = np.zeros(len(entries), np.int64)
    running, function = np.arange(len(entries)), entries.copy()
    popularity = np.cumsum(_power(_SITES, 2.5))
    for depth in range(_MOST_FRAMES):
        is_leaf = (random.random(len(running)) < program.stop_chance[function]) | (depth == _MOST_FRAMES - 1)
        spot = np.minimum((random.random(len(running)) ** 4 * _HOT_SPOTS).astype(np.int64), _HOT_SPOTS - 1)
        site = np.minimum(np.searchsorted(popularity, random.random(len(running))), _SITES - 1)
        site[program.is_straight[function]] = 0
        addresses[running, depth] = np.where(is_leaf, program.spots[function, spot], program.sites[function, site])
        lengths[running[is_leaf]] = depth + 1
        running, function = running[~is_leaf], program.callees[function, site][~is_leaf]
        if not running.size:
            break
    return addresses, lengths


def _rows(random: np.random.Generator, programs: tuple[_Program, _Program], keys: list[ProcessKey], quota: int) -> _Part:
    """Draw samples until `quota` distinct rows are there. Answers row keys, counts, and the stacks that they name."""
    program, kernel = programs
    multiplier = random.integers(1, 1 << 63, _MOST_FRAMES, dtype=np.uint64) | np.uint64(1)
    names = [b"main", b"worker-1", b"worker-2", b"io-1", b"gc", b"http-3"]
    drawn: list[tuple[U64, Index, U64, Index, Index]] = []
    rows = np.zeros(0, np.uint64)
    while len(np.unique(rows)) < quota:
        count = max(1024, 2 * quota)
        thread = random.choice(len(names), count, p=_power(len(names), 1.2))
        user, user_lengths = _walks(random, program, np.minimum(thread, 3))
        below, below_lengths = _walks(random, kernel, thread // 2)
        below_lengths[random.random(count) > 0.25] = 0
        below[below_lengths == 0] = 0
        drawn.append((user, user_lengths, below, below_lengths, thread))
        rows = np.concatenate([_hashes(*part, multiplier) for part in drawn])
    user, user_lengths, below, below_lengths, thread = (np.concatenate(part) for part in zip(*drawn, strict=True))
    _, first, counts = np.unique(rows, return_index=True, return_counts=True)
    kept = np.sort(np.argsort(first)[:quota])
    first, counts = first[kept], counts[kept]
    table = np.zeros(quota, CPU_KEY)
    table["pid"] = [keys[0].pid] * quota if len(keys) == 1 else random.choice([key.pid for key in keys], quota)
    table["start_boot_ns"], table["exec_id"] = table["pid"].astype(np.uint64) + 76_000, 1
    table["comm"] = np.array(names)[thread[first]]
    table["user_stack"] = (user[first] * multiplier).sum(axis=1) | np.uint64(1)
    table["kernel_stack"] = np.where(below_lengths[first] > 0, (below[first] * multiplier).sum(axis=1) | np.uint64(1), 0)
    stacks: _Matrices = {
        "user": user[first],
        "user_lengths": user_lengths[first],
        "below": below[first],
        "below_lengths": below_lengths[first],
    }
    return table, counts.astype(np.uint64), stacks


def _hashes(user: U64, _: Index, below: U64, __: Index, thread: Index, multiplier: U64) -> U64:
    return np.asarray(
        (user * multiplier).sum(axis=1) + (below * np.roll(multiplier, 7)).sum(axis=1) * np.uint64(3) + thread.astype(np.uint64)
    )


def _drain(parts: list[_Part]) -> CpuDrain:
    keys = np.concatenate([part[0] for part in parts])
    counts = np.concatenate([part[1] for part in parts])
    hashes = np.concatenate((keys["user_stack"], keys["kernel_stack"]))
    stacks = [part[2] for part in parts]
    matrix = np.concatenate([one["user"] for one in stacks] + [one["below"] for one in stacks])
    lengths = np.concatenate([one["user_lengths"] for one in stacks] + [one["below_lengths"] for one in stacks])
    distinct, first = np.unique(hashes, return_index=True)
    first = first[distinct != 0]
    distinct = distinct[distinct != 0]
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths[first])))
    rows = np.repeat(np.arange(len(first)), lengths[first])
    depth = bounds[1:][rows] - 1 - np.arange(bounds[-1])
    addresses = matrix[first][rows, depth].astype(np.uint64)
    ticks = TickAccount(int(counts.sum()), 0, 0, {})
    table = Stacks(distinct, bounds, addresses, np.zeros(len(first), np.bool_), np.zeros(len(first), np.uint8))
    return CpuDrain(0, 10 * 10**9, PERIOD_NS, keys, counts, table, ticks)
