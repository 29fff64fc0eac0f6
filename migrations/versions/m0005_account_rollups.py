# SPDX-License-Identifier: Apache-2.0
"""Accounts of ten minutes, an hour and a day, all agents in one row: a row a window and agent is read by the million for long ranges.

A previous server on this schema adds windows without looking here; the next one makes anew what it finds them to lie in.
"""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

# SQLite counts rows only in a column of the very type INTEGER.
_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "account_rollups",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("kind_id", _ROW_ID, nullable=False),
        sa.Column("length_s", sa.Integer(), nullable=False),
        sa.Column("start_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("is_ready", sa.Boolean(), nullable=False, comment="false: its windows changed since, or it was never made"),
        sa.Column("segments", sa.LargeBinary(), nullable=False, comment="server.store.segments"),
        sa.ForeignKeyConstraint(["kind_id"], ["kinds.id"], name=op.f("fk_account_rollups_kind_id_kinds")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_account_rollups")),
        sa.UniqueConstraint("kind_id", "length_s", "start_unix_ns", name=op.f("uq_account_rollups_kind_id_length_s_start_unix_ns")),
    )
    op.create_index(op.f("ix_account_rollups_is_ready_start_unix_ns"), "account_rollups", ["is_ready", "start_unix_ns"], unique=False)
    op.create_index(op.f("ix_account_rollups_start_unix_ns"), "account_rollups", ["start_unix_ns"], unique=False)


def downgrade() -> None:
    """Drop the table. What is older than the windows that are kept (49 hours) has no account then."""
    op.drop_table("account_rollups")
