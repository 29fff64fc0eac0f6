# SPDX-License-Identifier: Apache-2.0
"""The first schema: names, batches (level 0), blocks (level 1), dictionaries, accounts, and the keys of pushes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

# SQLite counts rows only in a column of the very type INTEGER.
_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make all tables."""
    _make_hosts()
    _make_series()
    _make_data()
    _make_dictionaries()
    _make_accounts()


def downgrade() -> None:
    """Drop all tables and with them all data."""
    for name in (
        "losses",
        "accounts",
        "dictionary_chunks",
        "blocks",
        "batches",
        "push_keys",
        "binaries",
        "series",
        "agents",
        "kinds",
        "services",
        "store_facts",
    ):
        op.drop_table(name)


def _make_hosts() -> None:
    op.create_table(
        "agents",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("agent_id", sa.LargeBinary(length=16), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("epoch_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("first_seen_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_window_end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("kernel_release", sa.Text(), nullable=False),
        sa.Column("agent_version", sa.Text(), nullable=False),
        sa.Column("online_cpus", sa.BigInteger(), nullable=False),
        sa.Column("rate_hz", sa.BigInteger(), nullable=False),
        sa.Column("window_s", sa.BigInteger(), nullable=False),
        sa.Column("flags", sa.Text(), nullable=False, comment="JSON list"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_agents")),
        sa.UniqueConstraint("agent_id", name=op.f("uq_agents_agent_id")),
    )
    op.create_table(
        "binaries",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("identity_hash", sa.LargeBinary(length=16), nullable=False),
        sa.Column("kind", sa.Integer(), nullable=False),
        sa.Column("build_id_kind", sa.Integer(), nullable=False),
        sa.Column("build_id", sa.LargeBinary(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("path", sa.LargeBinary(), nullable=False),
        sa.Column("segments", sa.Text(), nullable=False, comment="JSON [[offset, vaddr, file size, memory size, flags], ...]"),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_binaries")),
        sa.UniqueConstraint("identity_hash", name=op.f("uq_binaries_identity_hash")),
    )


def _make_series() -> None:
    op.create_table(
        "store_facts",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_store_facts")),
        comment="names and meanings: server.store.facts",
    )
    op.create_table(
        "services",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("name_hash", sa.LargeBinary(length=16), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_services")),
        sa.UniqueConstraint("name_hash", name=op.f("uq_services_name_hash")),
    )
    op.create_table(
        "kinds",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("columns", sa.Text(), nullable=False, comment="JSON [[name, unit, merge], ...]; only ever appended to"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_kinds")),
        sa.UniqueConstraint("name", name=op.f("uq_kinds_name")),
    )
    op.create_table(
        "series",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("service_id", _ROW_ID, nullable=False),
        sa.Column("kind_id", _ROW_ID, nullable=False),
        sa.Column("labels", sa.Text(), nullable=False, comment="JSON [[name, value], ...], sorted, service and host included"),
        sa.Column("labels_hash", sa.LargeBinary(length=16), nullable=False),
        sa.Column("first_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("last_unix_ns", sa.BigInteger(), nullable=False, comment="written when it moved by a minute"),
        sa.Column("last_received_unix_ns", sa.BigInteger(), nullable=False, comment="as last_unix_ns, by the server's clock"),
        sa.ForeignKeyConstraint(["kind_id"], ["kinds.id"], name=op.f("fk_series_kind_id_kinds")),
        sa.ForeignKeyConstraint(["service_id"], ["services.id"], name=op.f("fk_series_service_id_services")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_series")),
        sa.UniqueConstraint("kind_id", "labels_hash", name=op.f("uq_series_kind_id_labels_hash")),
    )


def _make_data() -> None:
    op.create_table(
        "batches",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("agent_row_id", _ROW_ID, nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("is_time_suspect", sa.Boolean(), nullable=False),
        sa.Column("is_compacted", sa.Boolean(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False, comment="of both blobs"),
        sa.Column("series_index", sa.LargeBinary(), nullable=False),
        sa.Column("rows", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["agent_row_id"], ["agents.id"], name=op.f("fk_batches_agent_row_id_agents")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_batches")),
    )
    op.create_index(op.f("ix_batches_is_compacted_start_unix_ns"), "batches", ["is_compacted", "start_unix_ns"], unique=False)
    op.create_index(op.f("ix_batches_start_unix_ns"), "batches", ["start_unix_ns"], unique=False)
    op.create_table(
        "blocks",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("service_id", _ROW_ID, nullable=False),
        sa.Column("kind_id", _ROW_ID, nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False, comment="of the minute"),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False, comment="of the last window in it"),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False, comment="of both blobs"),
        sa.Column("series_index", sa.LargeBinary(), nullable=False),
        sa.Column("rows", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["kind_id"], ["kinds.id"], name=op.f("fk_blocks_kind_id_kinds")),
        sa.ForeignKeyConstraint(["service_id"], ["services.id"], name=op.f("fk_blocks_service_id_services")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_blocks")),
        sa.UniqueConstraint("kind_id", "service_id", "start_unix_ns", name=op.f("uq_blocks_kind_id_service_id_start_unix_ns")),
    )
    op.create_index(op.f("ix_blocks_kind_id_start_unix_ns"), "blocks", ["kind_id", "start_unix_ns"], unique=False)
    op.create_index(op.f("ix_blocks_start_unix_ns"), "blocks", ["start_unix_ns"], unique=False)


def _make_dictionaries() -> None:
    op.create_table(
        "dictionary_chunks",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("service_id", _ROW_ID, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False, comment="ascending in a service"),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["service_id"], ["services.id"], name=op.f("fk_dictionary_chunks_service_id_services")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dictionary_chunks")),
        sa.UniqueConstraint("service_id", "position", name=op.f("uq_dictionary_chunks_service_id_position")),
    )


def _make_accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("agent_row_id", _ROW_ID, nullable=False),
        sa.Column("kind_id", _ROW_ID, nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("expected", sa.BigInteger(), nullable=False),
        sa.Column("stored", sa.BigInteger(), nullable=False),
        sa.Column("idle", sa.BigInteger(), nullable=False),
        sa.Column("filtered", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["agent_row_id"], ["agents.id"], name=op.f("fk_accounts_agent_row_id_agents")),
        sa.ForeignKeyConstraint(["kind_id"], ["kinds.id"], name=op.f("fk_accounts_kind_id_kinds")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
    )
    op.create_index(
        op.f("ix_accounts_kind_id_agent_row_id_start_unix_ns"), "accounts", ["kind_id", "agent_row_id", "start_unix_ns"], unique=False
    )
    op.create_index(op.f("ix_accounts_start_unix_ns"), "accounts", ["start_unix_ns"], unique=False)
    op.create_table(
        "losses",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("agent_row_id", _ROW_ID, nullable=False),
        sa.Column("kind_id", _ROW_ID, nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Integer(), nullable=False, comment="LossReason"),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["agent_row_id"], ["agents.id"], name=op.f("fk_losses_agent_row_id_agents")),
        sa.ForeignKeyConstraint(["kind_id"], ["kinds.id"], name=op.f("fk_losses_kind_id_kinds")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_losses")),
    )
    op.create_index(op.f("ix_losses_kind_id_start_unix_ns"), "losses", ["kind_id", "start_unix_ns"], unique=False)
    op.create_index(op.f("ix_losses_start_unix_ns"), "losses", ["start_unix_ns"], unique=False)
    op.create_table(
        "push_keys",
        sa.Column("agent_row_id", _ROW_ID, nullable=False),
        sa.Column("epoch_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("received_unix_ns", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["agent_row_id"], ["agents.id"], name=op.f("fk_push_keys_agent_row_id_agents")),
        sa.PrimaryKeyConstraint("agent_row_id", "epoch_unix_ns", "sequence", name=op.f("pk_push_keys")),
    )
    op.create_index(op.f("ix_push_keys_received_unix_ns"), "push_keys", ["received_unix_ns"], unique=False)
