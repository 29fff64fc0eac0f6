# SPDX-License-Identifier: Apache-2.0
"""How large a picture or a table may be asked for, and what is given when nothing is said."""

MOST_WIDTH_PX = 1_000_000
MOST_DEPTH = 10_000
DEFAULT_WIDTH_PX = 1200
DEFAULT_DEPTH = 1000
MOST_ROWS = 1000
MOST_PIECE_BYTES = 16 << 20
"""Of one request that brings a file, and so of any request: larger bodies are refused before they are read."""
