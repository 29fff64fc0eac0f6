# SPDX-License-Identifier: Apache-2.0
"""Wires the parts of the agent into one running whole, and owns its main loop."""
