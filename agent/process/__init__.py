# SPDX-License-Identifier: Apache-2.0
"""What a process is: identity, mappings, binaries, service, names of its JIT code."""
