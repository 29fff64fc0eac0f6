# SPDX-License-Identifier: Apache-2.0
"""What people and pipelines say of a deploy. A table of its own: deploys are derived from series, and may be told of before their first."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# SQLite counts rows only in a column of the very type INTEGER.
_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "deploy_notes",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("key_hash", sa.LargeBinary(length=16), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("written_unix_ns", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deploy_notes")),
        sa.UniqueConstraint("key_hash", name=op.f("uq_deploy_notes_key_hash")),
    )


def downgrade() -> None:
    """Drop the table and the notes with it."""
    op.drop_table("deploy_notes")
