# SPDX-License-Identifier: GPL-2.0
"""BPF programs and their headers, found through importlib.resources as agent.bpf."""
