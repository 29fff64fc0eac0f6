# SPDX-License-Identifier: Apache-2.0
"""Unwinding of user stacks without frame pointers: no code yet, stacks are walked by frame pointer."""
