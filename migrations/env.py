# SPDX-License-Identifier: Apache-2.0
"""Runs migrations on the connection the caller has opened, inside its transaction."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    transactional_ddl=True,
    transaction_per_migration=False,
)
context.run_migrations()
