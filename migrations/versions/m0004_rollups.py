# SPDX-License-Identifier: Apache-2.0
"""Blocks of ten minutes, an hour and a day. A table of its own: a previous server reads `blocks` as minutes, and would count these twice.

A previous server on this schema makes minutes without their rows here; the next one adds the rows when it starts.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

# SQLite counts rows only in a column of the very type INTEGER.
_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "rollups",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("service_id", _ROW_ID, nullable=False),
        sa.Column("kind_id", _ROW_ID, nullable=False),
        sa.Column("length_s", sa.Integer(), nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("is_ready", sa.Boolean(), nullable=False, comment="false: its minutes changed since, or it was never made"),
        sa.Column("first_unix_ns", sa.BigInteger(), nullable=False, comment="start of the first minute with data in it"),
        sa.Column("end_unix_ns", sa.BigInteger(), nullable=False, comment="of the last window in it"),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False, comment="of both blobs"),
        sa.Column("series_index", sa.LargeBinary(), nullable=False),
        sa.Column("rows", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["kind_id"], ["kinds.id"], name=op.f("fk_rollups_kind_id_kinds")),
        sa.ForeignKeyConstraint(["service_id"], ["services.id"], name=op.f("fk_rollups_service_id_services")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rollups")),
        sa.UniqueConstraint(
            "kind_id", "service_id", "length_s", "start_unix_ns", name=op.f("uq_rollups_kind_id_service_id_length_s_start_unix_ns")
        ),
    )
    op.create_index(op.f("ix_rollups_kind_id_length_s_start_unix_ns"), "rollups", ["kind_id", "length_s", "start_unix_ns"], unique=False)
    op.create_index(op.f("ix_rollups_is_ready_start_unix_ns"), "rollups", ["is_ready", "start_unix_ns"], unique=False)
    op.create_index(op.f("ix_rollups_start_unix_ns"), "rollups", ["start_unix_ns"], unique=False)


def downgrade() -> None:
    """Drop the table: all that is in it can be made again from minutes."""
    op.drop_table("rollups")
