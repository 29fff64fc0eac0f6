# SPDX-License-Identifier: Apache-2.0
"""Selectors, ranges and merges: from a question to one weight per key."""
