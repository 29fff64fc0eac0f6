# SPDX-License-Identifier: Apache-2.0
"""Hostile bytes for everything that reads files of others: `make fuzz` for long, a few thousand of them in `make test`."""
