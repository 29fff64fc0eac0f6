# SPDX-License-Identifier: Apache-2.0
"""The agent: samples one host with eBPF and ships compressed folded stacks to the server."""

__version__ = "0.1.0"
