# SPDX-License-Identifier: Apache-2.0
"""Agents and binaries by identity, cached: the two tables that every push refers to."""

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from functools import partial

import sqlalchemy as sa

from server.errors import BadRequest
from server.store import tables
from server.store.protocol import AgentInfo, BinaryInfo
from server.store.push import DecodedPush, PushBinary
from server.store.unit import Unit

TIME_SUSPECT = "time_suspect"
HOST_NAME_SHARED = "host_name_shared"
_SHARED_WITHIN_NS = 24 * 3600 * 10**9


class Agents:
    """Written under the lock of a unit; read from any thread."""

    def __init__(self, connection: sa.Connection) -> None:
        self._by_id: dict[bytes, AgentInfo] = {}
        self.row_ids: dict[bytes, int] = {}
        for row in connection.execute(sa.select(tables.agents)):
            self.row_ids[row.agent_id] = row.id
            values = dict(row._mapping, flags=tuple(json.loads(row.flags)))
            del values["id"]
            self._by_id[row.agent_id] = AgentInfo(**values)

    def all(self) -> list[AgentInfo]:
        """By host. Ids that share a host name, both seen in the last day, are flagged."""
        found = sorted(self._by_id.values(), key=lambda agent: (agent.host, agent.agent_id))
        newest = max((agent.last_seen_unix_ns for agent in found), default=0)
        recent = Counter(agent.host for agent in found if newest - agent.last_seen_unix_ns <= _SHARED_WITHIN_NS)
        return [_flagged(agent, HOST_NAME_SHARED) if recent[agent.host] > 1 else agent for agent in found]

    def see(self, unit: Unit, push: DecodedPush) -> int:
        """Note the push; gives the row of its agent."""
        key = push.envelope.agent_id
        old = self._by_id.get(key)
        new = _updated(old, push)
        values = {name: getattr(new, name) for name in AgentInfo.__dataclass_fields__} | {"flags": json.dumps(new.flags)}
        if old is None:
            inserted = unit.connection.execute(tables.agents.insert(), values).inserted_primary_key
            assert inserted is not None
            self.row_ids[key] = int(inserted[0])
            unit.on_rollback.append(partial(self.row_ids.__delitem__, key))
        else:
            unit.connection.execute(tables.agents.update().where(tables.agents.c.id == self.row_ids[key]).values(**values))
        unit.on_commit.append(partial(self._by_id.__setitem__, key, new))
        return self.row_ids[key]


class Binaries:
    """Written under the lock of a unit; read from any thread."""

    def __init__(self, connection: sa.Connection) -> None:
        self._row_ids: dict[bytes, int] = {}
        self._infos: dict[int, BinaryInfo] = {}
        table = tables.binaries
        for row in connection.execute(sa.select(table)):
            segments = tuple(tuple(segment) for segment in json.loads(row.segments))
            fields = (row.kind, row.build_id_kind, row.build_id, row.content_hash, row.path, segments, row.size_bytes)
            self._row_ids[row.identity_hash] = row.id
            self._infos[row.id] = BinaryInfo(row.id, *fields)

    def infos(self, row_ids: Sequence[int]) -> list[BinaryInfo]:
        """In the order asked. Raises BadRequest for an unknown row."""
        try:
            return [self._infos[row_id] for row_id in row_ids]
        except KeyError as error:
            raise BadRequest(f"there is no binary {error}") from error

    def row_ids(self, unit: Unit, binaries: Sequence[PushBinary]) -> list[int]:
        """Find or make the rows of binaries. What was first said of the path and segments of one stays."""
        identities = [_identity_hash(binary) for binary in binaries]
        new = {identity: binary for identity, binary in zip(identities, binaries, strict=True) if identity not in self._row_ids}
        if new:
            unit.on_rollback.append(partial(self._forget, list(new)))
            # One writer gives the numbers: a statement for all of them, not one for each.
            first = max(self._infos, default=0) + 1
            infos = [_info(row_id, binary) for row_id, binary in enumerate(new.values(), first)]
            self._row_ids.update(zip(new, (info.row_id for info in infos), strict=True))
            self._infos.update((info.row_id, info) for info in infos)
            unit.connection.execute(tables.binaries.insert(), [_binary_row(*one) for one in zip(new, infos, strict=True)])
        return [self._row_ids[identity] for identity in identities]

    def _forget(self, identities: Sequence[bytes]) -> None:
        for identity in identities:
            self._infos.pop(self._row_ids.pop(identity, 0), None)


def _info(row_id: int, binary: PushBinary) -> BinaryInfo:
    identity = (binary.kind, binary.build_id_kind, binary.build_id, binary.content_hash)
    return BinaryInfo(row_id, *identity, binary.path, binary.segments, binary.size_bytes)


def _binary_row(identity_hash: bytes, info: BinaryInfo) -> dict[str, object]:
    fields = ("kind", "build_id_kind", "build_id", "content_hash", "path", "size_bytes")
    values = {name: getattr(info, name) for name in fields}
    return values | {"id": info.row_id, "identity_hash": identity_hash, "segments": json.dumps(info.segments)}


def _updated(old: AgentInfo | None, push: DecodedPush) -> AgentInfo:
    """Facts of the newest window stay; windows arrive in any order."""
    envelope, host = push.envelope, push.host
    seen = envelope.received_unix_ns
    if old is not None and envelope.end_unix_ns < old.last_window_end_unix_ns:
        values = {name: getattr(old, name) for name in AgentInfo.__dataclass_fields__}
        return AgentInfo(**values | {"last_seen_unix_ns": max(seen, old.last_seen_unix_ns)})
    flags = {*host.flags, TIME_SUSPECT} if envelope.is_time_suspect else {*host.flags}
    return AgentInfo(
        agent_id=envelope.agent_id,
        host=host.host,
        epoch_unix_ns=envelope.epoch_unix_ns,
        first_seen_unix_ns=seen if old is None else old.first_seen_unix_ns,
        last_seen_unix_ns=seen if old is None else max(seen, old.last_seen_unix_ns),
        last_window_end_unix_ns=envelope.end_unix_ns,
        kernel_release=host.kernel_release,
        agent_version=host.agent_version,
        online_cpus=host.online_cpus,
        rate_hz=host.rate_hz,
        window_s=host.window_s,
        flags=tuple(sorted(flags)),
    )


def _flagged(agent: AgentInfo, flag: str) -> AgentInfo:
    values = {name: getattr(agent, name) for name in AgentInfo.__dataclass_fields__}
    return AgentInfo(**values | {"flags": (*agent.flags, flag)})


def _identity_hash(binary: PushBinary) -> bytes:
    """Of kind, ids and content; of the path too where there is neither build id nor content to tell files apart."""
    path = b"" if binary.build_id or binary.content_hash else binary.path
    parts = [str(binary.kind).encode(), str(binary.build_id_kind).encode(), binary.build_id, binary.content_hash, path]
    text = b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    return hashlib.blake2b(text, digest_size=16).digest()
