# SPDX-License-Identifier: Apache-2.0
"""Migrations in order."""
