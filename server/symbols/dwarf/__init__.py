# SPDX-License-Identifier: Apache-2.0
"""Reads functions, inlined calls and lines from DWARF 2 to 5, inside the jailed child only."""
