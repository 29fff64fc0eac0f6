# SPDX-License-Identifier: Apache-2.0
"""Unwind tables: from .eh_frame to rows, once per binary, kept on disk and shared by the fleet."""
