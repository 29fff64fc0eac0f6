# SPDX-License-Identifier: Apache-2.0
"""Documents: deploys with their reports, events, saved views and shares, each written whole and read whole.

They outlive the profiles they were made from, so nothing here refers to a series, a block or a service's row.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

# SQLite counts rows only in a column of the very type INTEGER.
_ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "documents",
        sa.Column("id", _ROW_ID, nullable=False),
        sa.Column("collection", sa.String(length=32), nullable=False),
        sa.Column("key", sa.String(length=64), nullable=False),
        sa.Column("at_unix_ns", sa.BigInteger(), nullable=False),
        sa.Column("expires_unix_ns", sa.BigInteger(), nullable=False, comment="0 never"),
        sa.Column("body", sa.LargeBinary(), nullable=False, comment="JSON, zstd"),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
        sa.UniqueConstraint("collection", "key", name=op.f("uq_documents_collection_key")),
    )
    op.create_index(op.f("ix_documents_collection_at_unix_ns"), "documents", ["collection", "at_unix_ns"])
    op.create_index(op.f("ix_documents_expires_unix_ns"), "documents", ["expires_unix_ns"])


def downgrade() -> None:
    """Drop the table and all documents with it."""
    op.drop_table("documents")
