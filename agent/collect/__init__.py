# SPDX-License-Identifier: Apache-2.0
"""Addresses to places, samples to windows, windows to bytes."""
