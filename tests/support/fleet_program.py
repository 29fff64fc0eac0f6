# SPDX-License-Identifier: Apache-2.0
"""Programs of simulated services: functions in binaries of their own and shared ones, heavy-tailed stacks, and what names them.

A function is a number: first those of the service, then those of the shared libraries, then the kernel's, then the planted ones, which
have no weight until a release gives them some. A frame is a place in a file whose offset tells the function, shifted by build: other
versions have other offsets, as real ones do.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import columns
from server.profile.names import CodeKind, FrameColumns, FrameNames, FunctionTable
from server.query.frame_names import Binaries
from server.store.protocol import BinaryInfo

Index = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]

OWN, SHARED, KERNEL, PLANTED = 300, 120, 60, 4
"""Functions of each sort."""
FUNCTIONS = OWN + SHARED + KERNEL + PLANTED
LIBRARIES = 3
GROUPS = 12
"""Requests of a service: each stack serves one, and each is asked for more or less."""
_FIRST_KERNEL = OWN + SHARED
_FIRST_PLANTED = OWN + SHARED + KERNEL
_BRANCHES = 4
_MOST_FRAMES = 48
_SHIFT = 8
"""Bytes of a function, as a power of two."""
_WITHOUT_NAME = 37
"""Every so many functions of a service have no name."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """One service. Rows are stacks: functions root first, -1 behind the leaf."""

    service: str
    functions: Index
    """Shape (stacks, frames)."""
    lengths: Index
    groups: Index
    base: F64
    """Share of each stack; 0 of planted ones."""
    pattern: F64
    """The same, but planted stacks share theirs as they would when they have some."""

    def through(self, name: str) -> npt.NDArray[np.bool_]:
        """Mask the stacks that have a function."""
        mask: npt.NDArray[np.bool_] = (self.functions == self.number(name)).any(axis=1)
        return mask

    def number(self, name: str) -> int:
        """Number of a function."""
        return next(number for number in range(FUNCTIONS) if function_name(self.service, number) == name)

    def shares(self, weights: F64) -> dict[str, float]:
        """Share of each function by total, a stack once however often it has the function."""
        total, shares = float(weights.sum()), {}
        for number in range(FUNCTIONS):
            value = float(weights[(self.functions == number).any(axis=1)].sum())
            if value:
                shares[function_name(self.service, number)] = value / total
        return shares

    def with_shares(self, shares: dict[str, float]) -> F64:
        """Weights when the stacks through some functions are scaled to have these shares of the base: the others keep what they have."""
        weights = self.base.copy()
        for name, share in shares.items():
            mask = self.through(name)
            weights[mask] = self.pattern[mask] * (share / self.pattern[mask].sum())
        return weights


def planted(service: str, number: int = 0) -> str:
    """Name of a function that a release may bring."""
    return function_name(service, _FIRST_PLANTED + number)


def function_name(service: str, number: int) -> str:
    """Name of a function of a service's program."""
    if number >= _FIRST_PLANTED:
        return f"{service}::planted_{number - _FIRST_PLANTED}"
    if number >= _FIRST_KERNEL:
        return f"kernel_function_{number - _FIRST_KERNEL}"
    if number >= OWN:
        return f"library{number % LIBRARIES}::call_{number - OWN}"
    return f"{service}::part{number % 7}::work_{number}"


def draw_program(service: str, stacks: int, seed: int) -> Program:
    """Draw a program of about so many stacks."""
    random = np.random.default_rng([seed, *hashlib.blake2b(service.encode(), digest_size=4).digest()])
    callees = _callees(random)
    matrix, lengths = _walk(random, callees, stacks)
    first = np.unique(matrix, axis=0, return_index=True)[1]
    matrix, lengths = matrix[np.sort(first)], lengths[np.sort(first)]
    weights = random.pareto(1.1, lengths.size) + 0.02
    extra, extra_lengths = _planted_stacks()
    pattern = np.concatenate([weights / weights.sum(), np.full(extra_lengths.size, 1.0 / extra_lengths.size)])
    base = pattern.copy()
    base[lengths.size :] = 0.0
    functions = np.concatenate([matrix, extra])
    return Program(service, functions, np.concatenate([lengths, extra_lengths]), functions[:, 1] % GROUPS, base, pattern)


@dataclass(slots=True)
class Build:
    """One version of a program as an agent sends it: binaries, frames and stacks, and the numbers the server gave its keys."""

    program: Program
    version: str
    numbers: Index = field(default_factory=lambda: np.zeros(0, np.int64))
    """Key of each stack, once the server has said so."""

    def lay_tables(self, batch: pb.FoldedBatch) -> Index:
        """Put all frames and stacks into an empty batch; gives the node of each stack."""
        nodes, parents, codes = _prefix_tree(self.program)
        distinct, frames = np.unique(codes, return_inverse=True)
        function, is_leaf = distinct >> 1, distinct & 1
        kinds = np.where(is_kernel(function), pb.PLACE_KIND_KERNEL, pb.PLACE_KIND_FILE)
        refs = np.select([is_kernel(function), (function >= OWN) & (function < _FIRST_KERNEL)], [2, 3 + function % LIBRARIES], 1)
        shift = np.where(refs == 1, build_shift(self.build_id), 0)
        offsets = shift + (function << _SHIFT) + np.where(is_leaf, 7, 31)
        batch.binaries.extend([pb.Binary(), *self._binaries()])
        batch.frames.CopyFrom(
            pb.FrameTable(
                kinds=_with_empty(kinds), refs=_with_empty(refs), offsets=_with_empty(offsets), is_return=_with_empty(1 - is_leaf)
            )
        )
        distances = np.arange(1, parents.size + 1) - parents
        batch.stacks.CopyFrom(pb.StackTable(parent_distances=_with_empty(distances), frames=_with_empty(frames + 1)))
        return nodes

    @property
    def build_id(self) -> bytes:
        """Of the service's own binary."""
        return hashlib.blake2b(f"{self.program.service} {self.version}".encode(), digest_size=20).digest()

    def _binaries(self) -> list[pb.Binary]:
        libraries = [_elf(f"/usr/lib/library{n}.so", hashlib.blake2b(b"%d" % n, digest_size=20).digest()) for n in range(LIBRARIES)]
        identity = pb.BinaryId(build_id_kind=pb.BUILD_ID_KIND_GNU, build_id=bytes(20))
        kernel = pb.Binary(kind=pb.BINARY_KIND_KERNEL, id=identity)
        return [_elf(f"/opt/{self.program.service}", self.build_id), kernel, *libraries]


class FleetNamer:
    """Names the frames of simulated programs as a Namer does; every 37th function of a service has no name."""

    def __init__(self) -> None:
        self.generation = 1

    def pending(self) -> int:
        return 0

    def look_at(self, binaries: Sequence[tuple[BinaryInfo, float]]) -> list[int]:
        raise AssertionError("nothing is being made")

    def names(self, frames: FrameColumns, binaries: Binaries, strings: Sequence[bytes], service: str = "") -> FrameNames:
        """See server.query.trees.Namer."""
        refs, numbers = np.unique(frames.refs, return_inverse=True)
        paths = {info.row_id: info for info in binaries([ref for ref in refs.tolist() if ref])}
        shifts = np.array(
            [build_shift(paths[ref].build_id) if ref and paths[ref].path.startswith(b"/opt/") else 0 for ref in refs.tolist()]
        )
        function = (frames.offsets.astype(np.int64) - shifts[numbers]) >> _SHIFT
        is_unnamed = (function % _WITHOUT_NAME == _WITHOUT_NAME - 1) & (function < OWN)
        codes = np.where(frames.kinds == pb.PLACE_KIND_KERNEL, CodeKind.KERNEL, CodeKind.CPP).astype(np.uint8)
        # Of functions without a name each place is one.
        keys = np.where(is_unnamed, frames.offsets.astype(np.int64) + (1 << 40), function) * 2 + (frames.refs > 0)
        used, first, place = np.unique(keys * refs.size + numbers, return_index=True, return_inverse=True)
        names, bases = [], []
        for at in first.tolist():
            info = paths.get(int(frames.refs[at]))
            base = (info.path.decode().rpartition("/")[2] or "kernel") if info else ""
            known = function_name(service, int(function[at])) if frames.kinds[at] else ""
            is_bare = bool(is_unnamed[at] and info)
            names.append(f"[unknown] {base}+{int(frames.offsets[at]):#x}" if is_bare else known)
            bases.append(f"{base} (build {info.build_id.hex()[:8]})" if is_bare and info else base)
        table = FunctionTable(
            names=names,
            raw_names=names,
            binaries=bases,
            codes=codes[first],
            is_named=~is_unnamed[first],
            files=[""] * used.size,
            lines=np.zeros(used.size, np.int32),
        )
        return FrameNames(place.astype(np.int32), table, self.generation)


def is_kernel(function: Index) -> npt.NDArray[np.bool_]:
    """Mask the functions of the kernel."""
    return (function >= _FIRST_KERNEL) & (function < _FIRST_PLANTED)


def build_shift(build_id: bytes) -> int:
    """How far the functions of a build are from where they would be in the first."""
    return 0x1000 + (build_id[0] << 4)


def _callees(random: np.random.Generator) -> Index:
    """Who calls whom: services call further into themselves and into libraries, these into themselves and the kernel."""
    function = np.arange(FUNCTIONS)
    step = 1 + random.integers(0, 60, (FUNCTIONS, _BRANCHES))
    callees = function[:, None] + step
    limit = np.where(function < _FIRST_KERNEL, _FIRST_KERNEL + KERNEL // 2, _FIRST_PLANTED)
    bounded: Index = np.minimum(callees, limit[:, None] - 1)
    return bounded


def _walk(random: np.random.Generator, callees: Index, stacks: int) -> tuple[Index, Index]:
    """Root, a request of GROUPS, and on down; lengths are lognormal: most are short, some very long."""
    lengths = np.clip(3 + random.lognormal(2.2, 0.5, stacks), 4, _MOST_FRAMES).astype(np.int64)
    matrix = np.full((stacks, _MOST_FRAMES), -1)
    matrix[:, 0] = 0
    matrix[:, 1] = 1 + np.minimum((random.random(stacks) ** 2 * GROUPS).astype(np.int64), GROUPS - 1)
    for depth in range(2, _MOST_FRAMES):
        branch = (random.random(stacks) ** 3 * _BRANCHES).astype(np.int64)
        # A function that has nobody to call calls itself.
        matrix[:, depth] = callees[matrix[:, depth - 1], branch]
    matrix[np.arange(_MOST_FRAMES)[None, :] >= lengths[:, None]] = -1
    return matrix, lengths


def _planted_stacks() -> tuple[Index, Index]:
    """Of each planted function five stacks: the root, one of five requests, the function, and below some of them a library's."""
    matrix, lengths = np.full((5 * PLANTED, _MOST_FRAMES), -1), np.full(5 * PLANTED, 3)
    number, turn = np.divmod(np.arange(5 * PLANTED), 5)
    matrix[:, 0], matrix[:, 1], matrix[:, 2] = 0, 1 + turn, _FIRST_PLANTED + number
    goes_on = turn % 2 == 1
    matrix[goes_on, 3] = OWN + 7 + turn[goes_on]
    lengths[goes_on] = 4
    return matrix, lengths


def _prefix_tree(program: Program) -> tuple[Index, Index, Index]:
    """Node of each stack, and by node (from 1 on) its parent and twice its function, plus one where it is a leaf."""
    nodes = np.zeros(program.lengths.size, np.int64)
    parents, codes, count = [], [], 1
    for depth in range(program.functions.shape[1]):
        is_in = program.lengths > depth
        function = program.functions[is_in, depth]
        code = function * 2 + (program.lengths[is_in] == depth + 1)
        keys, place = np.unique(nodes[is_in] * (2 * FUNCTIONS) + code, return_inverse=True)
        parents.append(keys // (2 * FUNCTIONS))
        codes.append(keys % (2 * FUNCTIONS))
        nodes[is_in] = place + count
        count += keys.size
    return nodes, np.concatenate(parents), np.concatenate(codes)


def _with_empty(values: npt.NDArray[np.integer]) -> pb.Column:
    return columns.encode_column(np.concatenate([[0], values]))


def _elf(path: str, build_id: bytes) -> pb.Binary:
    identity = pb.BinaryId(build_id_kind=pb.BUILD_ID_KIND_GNU, build_id=build_id, content_hash=build_id[:16])
    text = pb.Segment(offset=0x1000, vaddr=0x401000, file_size_bytes=1 << 20, memory_size_bytes=1 << 20, flags=5)
    return pb.Binary(kind=pb.BINARY_KIND_ELF, id=identity, path=path.encode(), segments=[text], size_bytes=2 << 20)
