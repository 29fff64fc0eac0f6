# SPDX-License-Identifier: Apache-2.0
"""Turns foreign formats into values and back: folded text."""
