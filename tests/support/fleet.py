# SPDX-License-Identifier: Apache-2.0
"""A seeded fleet: hosts that run services, sampled as agents would and pushed through the real ingest, far faster than real time.

    samples of a stack in a window ~ Poisson(rate x window x cores x host x day x request x weight)

host is a factor of each host that stays; day the cycle of 24 h; request one of the service's requests, which wanders (autocorrelated, so
that windows are over-dispersed); weight is the stack's, heavy-tailed, and the truth: releases change it from a moment on, host by host.
"""

import hashlib
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
import zstandard

from emberwatch.v1 import batch_pb2 as pb
from emberwatch.v1 import collector_pb2 as collector
from emberwatch.v1 import columns
from server.ingest.limits import IngestLimits
from server.ingest.push import Ingest
from server.store.protocol import Store
from tests.support.fleet_program import GROUPS, Build, Program, draw_program
from tests.support.pushes import new_store

F64 = npt.NDArray[np.float64]
Push = Callable[[collector.PushRequest], collector.PushResponse]

SECOND_NS = 10**9
DAY_NS = 86_400 * SECOND_NS
RATE_HZ = 99
PERIOD_NS = 10_101_010
CPUS = 4
START_UNIX_NS = 1_760_000_400 * SECOND_NS
"""A whole hour."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How much windows differ without a change: standard deviations of logarithms, and how long a wander is remembered."""

    hosts: float = 0.1
    requests: float = 0.15
    memory_s: float = 120.0
    day: float = 0.4
    """Of the daily cycle, as a part of the mean."""


@dataclass(frozen=True, slots=True)
class FleetShape:
    """How large a fleet is. Every host runs every service."""

    services: tuple[str, ...] = ("checkout", "search", "mail")
    hosts: int = 6
    stacks: int = 1000
    cores: float = 1.0
    """Of the first service on each host; the n-th uses 1 / n of that."""
    window_s: int = 10
    seed: int = 7
    noise: Noise = Noise()


@dataclass(frozen=True, slots=True)
class Release:
    """From a moment on a host runs a version, and functions have other shares of the base (0: it vanished).

    A planted function (tests.support.fleet_program.planted) has share 0 before. The same version again is a change without a deploy.
    """

    service: str
    version: str
    at_unix_ns: int = 0
    step_ns: int = 0
    """Between one host and the next."""
    hosts: tuple[str, ...] | None = None
    """None: all."""
    shares: Mapping[str, float] = field(default_factory=dict)


class Service:
    """One service on all hosts: the truth, and the state that wanders."""

    def __init__(self, shape: FleetShape, rank: int, releases: Sequence[Release]) -> None:
        self.name = shape.services[rank]
        self.program: Program = draw_program(self.name, shape.stacks, shape.seed)
        self.hosts = host_names(shape)
        self._shape, self._releases = shape, [release for release in releases if release.service == self.name]
        digest = hashlib.blake2b(self.name.encode(), digest_size=4).digest()
        self._random = np.random.default_rng([shape.seed, rank, *digest])
        self._cores = shape.cores / (rank + 1)
        self._host_factor = np.exp(self._random.normal(0, shape.noise.hosts, (shape.hosts, GROUPS)))
        self._wander = self._random.normal(0, 1, (shape.hosts, GROUPS))
        self._phase = self._random.random(GROUPS) * 0.2
        self._builds: dict[str, Build] = {}
        self._weights: dict[tuple[tuple[str, float], ...], F64] = {}

    def version(self, host: int, at_unix_ns: int) -> str:
        """The version that a host runs; "" before the first release."""
        found = [release.version for release in self._of(host, at_unix_ns)]
        return found[-1] if found else ""

    def weights(self, host: int, at_unix_ns: int) -> F64:
        """The truth: expected share of each stack, of the base."""
        shares: dict[str, float] = {}
        for release in self._of(host, at_unix_ns):
            shares |= release.shares
        key = tuple(sorted(shares.items()))
        if key not in self._weights:
            self._weights[key] = self.program.with_shares(shares)
        return self._weights[key]

    def build(self, version: str) -> Build:
        """What the agent knows of a version."""
        return self._builds.setdefault(version, Build(self.program, version))

    def draw(self, host: int, start_unix_ns: int) -> npt.NDArray[np.int64]:
        """Samples of each stack in one window of one host. Windows of a host must be drawn in their order."""
        noise, length_s = self._shape.noise, self._shape.window_s
        kept = np.exp(-length_s / noise.memory_s)
        state = self._wander[host]
        state *= kept
        state += self._random.normal(0, np.sqrt(1 - kept * kept), GROUPS)
        day = 1 + noise.day * np.sin(2 * np.pi * ((start_unix_ns % DAY_NS) / DAY_NS + self._phase))
        request = np.exp(noise.requests * state) * self._host_factor[host] * day
        expected = self.weights(host, start_unix_ns) * (RATE_HZ * length_s * self._cores)
        drawn: npt.NDArray[np.int64] = self._random.poisson(expected * request[self.program.groups])
        return drawn

    def _of(self, host: int, at_unix_ns: int) -> Iterator[Release]:
        for release in self._releases:
            chosen = self.hosts if release.hosts is None else release.hosts
            name = self.hosts[host]
            if name in chosen and at_unix_ns >= release.at_unix_ns + chosen.index(name) * release.step_ns:
                yield release


class Fleet:
    """All hosts. `run` pushes window after window; `shares` tells what should be found."""

    def __init__(self, shape: FleetShape = FleetShape(), releases: Sequence[Release] = ()) -> None:
        self.shape = shape
        self.services = {name: Service(shape, rank, releases) for rank, name in enumerate(shape.services)}
        self.hosts = host_names(shape)
        self.windows = 0
        self.samples = 0
        self._dictionary_id = b""
        self._sequences = [0] * shape.hosts

    def shares(self, service: str, host: int, at_unix_ns: int) -> dict[str, float]:
        """The true share of each function on a host, by total."""
        found = self.services[service]
        return found.program.shares(found.weights(host, at_unix_ns))

    def run(self, push: Push, from_unix_ns: int, until_unix_ns: int) -> None:
        """Push all windows that start in the range, the oldest first."""
        length_ns = self.shape.window_s * SECOND_NS
        for start in range(from_unix_ns, until_unix_ns, length_ns):
            for host in range(self.shape.hosts):
                self._push(push, host, start)

    def _push(self, push: Push, host: int, start_unix_ns: int) -> None:
        batch = _batch(self.hosts[host], self.shape.window_s)
        stored, new = 0, []
        for service in self.services.values():
            build, counts = service.build(service.version(host, start_unix_ns)), service.draw(host, start_unix_ns)
            self.samples += int(counts.sum())
            if build.numbers.size:
                batch.series.append(_known(build, counts))
                stored += int(counts.sum())
            else:
                new.append((build, counts))
        for drawn in new:
            self._push_new(push, host, start_unix_ns, drawn)
        idle = max(0, CPUS * RATE_HZ * self.shape.window_s - stored)
        push(self._request(batch, host, start_unix_ns, pb.Account(kind="cpu", expected=stored + idle, stored=stored, idle=idle)))
        self.windows += 1

    def _push_new(self, push: Push, host: int, start_unix_ns: int, drawn: tuple[Build, npt.NDArray[np.int64]]) -> None:
        """A build the server has not seen, in a push of its own: all its stacks, so that later windows say numbers only."""
        build, counts = drawn
        batch = _batch(self.hosts[host], self.shape.window_s)
        series = _series(build)
        batch.series.append(series)
        nodes = build.lay_tables(batch)
        zeros = columns.encode_column(np.zeros(nodes.size, np.int64))
        keys = pb.KeyTable(stacks=columns.encode_column(nodes), seconds=zeros, objects=zeros, classes=zeros)
        keys.threads.CopyFrom(columns.encode_column(1 + build.program.groups % 3))
        batch.series[0].new_keys.CopyFrom(keys)
        batch.series[0].columns[0].values.CopyFrom(columns.encode_column(counts))
        stored = int(counts.sum())
        answer = push(self._request(batch, host, start_unix_ns, pb.Account(kind="cpu", expected=stored, stored=stored)))
        build.numbers = columns.decode_column(answer.new_key_ids[0].keys, nodes.size).astype(np.int64)
        self._dictionary_id = answer.dictionary_id

    def _request(self, batch: pb.FoldedBatch, host: int, start_unix_ns: int, account: pb.Account) -> collector.PushRequest:
        self._sequences[host] += 1
        batch.accounts.append(account)
        raw = batch.SerializeToString()
        return collector.PushRequest(
            agent_id=hashlib.blake2b(self.hosts[host].encode(), digest_size=16).digest(),
            epoch_unix_ns=1,
            sequence=self._sequences[host],
            is_last_part=True,
            window_start_unix_ns=start_unix_ns,
            window_end_unix_ns=start_unix_ns + self.shape.window_s * SECOND_NS,
            payload=zstandard.ZstdCompressor(level=1).compress(raw),
            raw_size_bytes=len(raw),
            raw_crc32=zlib.crc32(raw),
            dictionary_id=self._dictionary_id,
        )


class FleetStore:
    """A store that a fleet was pushed into; its clock stands at the end of the last window."""

    def __init__(self, directory: Path) -> None:
        self.store: Store = new_store(directory)
        self.now_unix_ns = START_UNIX_NS
        self._ingest = Ingest(self.store, clock=lambda: self.now_unix_ns, limits=IngestLimits())

    def push(self, request: collector.PushRequest) -> collector.PushResponse:
        """What an agent calls."""
        self.now_unix_ns = max(self.now_unix_ns, request.window_end_unix_ns)
        return self._ingest.push(request)

    def compact(self, later_ns: int = 0) -> None:
        """All upkeep that is due, `later_ns` from now."""
        while not self.store.compact(self.now_unix_ns + later_ns).is_done:
            pass


def host_names(shape: FleetShape) -> tuple[str, ...]:
    """Names of the hosts."""
    return tuple(f"host-{number:03}" for number in range(shape.hosts))


def _batch(host: str, window_s: int) -> pb.FoldedBatch:
    facts = pb.HostFacts(
        host=host.encode(), kernel_release=b"6.1.0", online_cpus=CPUS, agent_version="0.1.0", rate_hz=RATE_HZ, window_s=window_s
    )
    return pb.FoldedBatch(version=1, host=facts, strings=columns.encode_strings([b"", b"worker-N", b"main", b"io-N"]))


def _series(build: Build) -> pb.Series:
    labels = [pb.Label(name="service", value=build.program.service.encode())]
    if build.version:
        labels.append(pb.Label(name="version", value=build.version.encode()))
    return pb.Series(
        labels=labels,
        kind="cpu",
        columns=[
            pb.ValueColumn(name="samples", unit="count", merge=pb.MERGE_SUM),
            pb.ValueColumn(name="ns", unit="ns", merge=pb.MERGE_SUM, times_first=PERIOD_NS),
            pb.ValueColumn(name="observed", unit="count", merge=pb.MERGE_SUM, times_first=1),
        ],
    )


def _known(build: Build, counts: npt.NDArray[np.int64]) -> pb.Series:
    """A series of keys that the server has numbered; they were numbered in their order or sorted here."""
    series = _series(build)
    seen = np.flatnonzero(counts)
    order = np.argsort(build.numbers[seen])
    series.known_keys.CopyFrom(columns.encode_ascending(build.numbers[seen][order]))
    series.columns[0].values.CopyFrom(columns.encode_column(counts[seen][order]))
    return series
