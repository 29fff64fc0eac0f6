# SPDX-License-Identifier: Apache-2.0
"""Alembic migrations, found through importlib.resources as server.migrations."""
