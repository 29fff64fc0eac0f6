# SPDX-License-Identifier: Apache-2.0
"""The tables. migrations/versions make them; tests/test_migrations.py holds the two together.

Sizes: agents, services, kinds, series and binaries are few and cached in memory; batches, blocks, dictionary_chunks hold the data as
blobs of server.store.container; accounts, losses and push_keys grow by a row a window, and stay for two days.
"""

from sqlalchemy import BigInteger, Boolean, Column, ForeignKey, Index, Integer, LargeBinary, MetaData, String, Table, Text, UniqueConstraint

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_N_name)s_%(referred_table_name)s",
    "pk": "pk_%(table_name)s",
    "ck": "ck_%(table_name)s_%(constraint_name)s",
}
metadata = MetaData(naming_convention=NAMING)

# SQLite counts rows only in a column of the very type INTEGER.
_ROW_ID = BigInteger().with_variant(Integer(), "sqlite")

store_facts = Table(
    "store_facts",
    metadata,
    Column("name", String(64), primary_key=True),
    Column("value", LargeBinary, nullable=False),
    comment="names and meanings: server.store.facts",
)

services = Table(
    "services",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("name", Text, nullable=False),
    Column("name_hash", LargeBinary(16), nullable=False),
    UniqueConstraint("name_hash"),
)

kinds = Table(
    "kinds",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("name", String(64), nullable=False),
    Column("columns", Text, nullable=False, comment="JSON [[name, unit, merge], ...]; only ever appended to"),
    UniqueConstraint("name"),
)

series = Table(
    "series",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("service_id", _ROW_ID, ForeignKey("services.id"), nullable=False),
    Column("kind_id", _ROW_ID, ForeignKey("kinds.id"), nullable=False),
    Column("labels", Text, nullable=False, comment="JSON [[name, value], ...], sorted, service and host included"),
    Column("labels_hash", LargeBinary(16), nullable=False),
    Column("first_unix_ns", BigInteger, nullable=False),
    Column("last_unix_ns", BigInteger, nullable=False, comment="written when it moved by a minute"),
    Column("last_received_unix_ns", BigInteger, nullable=False, comment="as last_unix_ns, by the server's clock"),
    UniqueConstraint("kind_id", "labels_hash"),
)

agents = Table(
    "agents",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("agent_id", LargeBinary(16), nullable=False),
    Column("host", Text, nullable=False),
    Column("epoch_unix_ns", BigInteger, nullable=False),
    Column("first_seen_unix_ns", BigInteger, nullable=False),
    Column("last_seen_unix_ns", BigInteger, nullable=False),
    Column("last_window_end_unix_ns", BigInteger, nullable=False),
    Column("kernel_release", Text, nullable=False),
    Column("agent_version", Text, nullable=False),
    Column("online_cpus", BigInteger, nullable=False),
    Column("rate_hz", BigInteger, nullable=False),
    Column("window_s", BigInteger, nullable=False),
    Column("flags", Text, nullable=False, comment="JSON list"),
    UniqueConstraint("agent_id"),
)

binaries = Table(
    "binaries",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("identity_hash", LargeBinary(16), nullable=False),
    Column("kind", Integer, nullable=False),
    Column("build_id_kind", Integer, nullable=False),
    Column("build_id", LargeBinary, nullable=False),
    Column("content_hash", LargeBinary, nullable=False),
    Column("path", LargeBinary, nullable=False),
    Column("segments", Text, nullable=False, comment="JSON [[offset, vaddr, file size, memory size, flags], ...]"),
    Column("size_bytes", BigInteger, nullable=False),
    UniqueConstraint("identity_hash"),
)

push_keys = Table(
    "push_keys",
    metadata,
    Column("agent_row_id", _ROW_ID, ForeignKey("agents.id"), primary_key=True),
    Column("epoch_unix_ns", BigInteger, primary_key=True),
    Column("sequence", BigInteger, primary_key=True),
    Column("received_unix_ns", BigInteger, nullable=False),
    Index(None, "received_unix_ns"),
)

batches = Table(
    "batches",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("agent_row_id", _ROW_ID, ForeignKey("agents.id"), nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False),
    Column("end_unix_ns", BigInteger, nullable=False),
    Column("is_time_suspect", Boolean, nullable=False),
    Column("is_compacted", Boolean, nullable=False),
    Column("size_bytes", BigInteger, nullable=False, comment="of both blobs"),
    Column("series_index", LargeBinary, nullable=False),
    Column("rows", LargeBinary, nullable=False),
    Index(None, "is_compacted", "start_unix_ns"),
    Index(None, "start_unix_ns"),
)

blocks = Table(
    "blocks",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("service_id", _ROW_ID, ForeignKey("services.id"), nullable=False),
    Column("kind_id", _ROW_ID, ForeignKey("kinds.id"), nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False, comment="of the minute"),
    Column("end_unix_ns", BigInteger, nullable=False, comment="of the last window in it"),
    Column("size_bytes", BigInteger, nullable=False, comment="of both blobs"),
    Column("series_index", LargeBinary, nullable=False),
    Column("rows", LargeBinary, nullable=False),
    UniqueConstraint("kind_id", "service_id", "start_unix_ns"),
    Index(None, "kind_id", "start_unix_ns"),
    Index(None, "start_unix_ns"),
)

rollups = Table(
    "rollups",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("service_id", _ROW_ID, ForeignKey("services.id"), nullable=False),
    Column("kind_id", _ROW_ID, ForeignKey("kinds.id"), nullable=False),
    Column("length_s", Integer, nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False),
    Column("is_ready", Boolean, nullable=False, comment="false: its minutes changed since, or it was never made"),
    Column("first_unix_ns", BigInteger, nullable=False, comment="start of the first minute with data in it"),
    Column("end_unix_ns", BigInteger, nullable=False, comment="of the last window in it"),
    Column("size_bytes", BigInteger, nullable=False, comment="of both blobs"),
    Column("series_index", LargeBinary, nullable=False),
    Column("rows", LargeBinary, nullable=False),
    UniqueConstraint("kind_id", "service_id", "length_s", "start_unix_ns"),
    Index(None, "kind_id", "length_s", "start_unix_ns"),
    Index(None, "is_ready", "start_unix_ns"),
    Index(None, "start_unix_ns"),
)

dictionary_chunks = Table(
    "dictionary_chunks",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("service_id", _ROW_ID, ForeignKey("services.id"), nullable=False),
    Column("position", BigInteger, nullable=False, comment="ascending in a service"),
    Column("data", LargeBinary, nullable=False),
    UniqueConstraint("service_id", "position"),
)

accounts = Table(
    "accounts",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("agent_row_id", _ROW_ID, ForeignKey("agents.id"), nullable=False),
    Column("kind_id", _ROW_ID, ForeignKey("kinds.id"), nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False),
    Column("end_unix_ns", BigInteger, nullable=False),
    Column("expected", BigInteger, nullable=False),
    Column("stored", BigInteger, nullable=False),
    Column("idle", BigInteger, nullable=False),
    Column("filtered", BigInteger, nullable=False),
    Index(None, "kind_id", "agent_row_id", "start_unix_ns"),
    Index(None, "start_unix_ns"),
)

losses = Table(
    "losses",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("agent_row_id", _ROW_ID, ForeignKey("agents.id"), nullable=False),
    Column("kind_id", _ROW_ID, ForeignKey("kinds.id"), nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False),
    Column("reason", Integer, nullable=False, comment="LossReason"),
    Column("value", BigInteger, nullable=False),
    Index(None, "kind_id", "start_unix_ns"),
    Index(None, "start_unix_ns"),
)

account_rollups = Table(
    "account_rollups",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("kind_id", _ROW_ID, ForeignKey("kinds.id"), nullable=False),
    Column("length_s", Integer, nullable=False),
    Column("start_unix_ns", BigInteger, nullable=False),
    Column("is_ready", Boolean, nullable=False, comment="false: its windows changed since, or it was never made"),
    Column("segments", LargeBinary, nullable=False, comment="server.store.segments"),
    UniqueConstraint("kind_id", "length_s", "start_unix_ns"),
    Index(None, "is_ready", "start_unix_ns"),
    Index(None, "start_unix_ns"),
)

deploy_notes = Table(
    "deploy_notes",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("key_hash", LargeBinary(16), nullable=False),
    Column("service", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("text", Text, nullable=False),
    Column("written_unix_ns", BigInteger, nullable=False),
    UniqueConstraint("key_hash"),
)

documents = Table(
    "documents",
    metadata,
    Column("id", _ROW_ID, primary_key=True),
    Column("collection", String(32), nullable=False),
    Column("key", String(64), nullable=False),
    Column("at_unix_ns", BigInteger, nullable=False),
    Column("expires_unix_ns", BigInteger, nullable=False, comment="0 never"),
    Column("body", LargeBinary, nullable=False, comment="JSON, zstd"),
    UniqueConstraint("collection", "key"),
    Index(None, "collection", "at_unix_ns"),
    Index(None, "expires_unix_ns"),
)
