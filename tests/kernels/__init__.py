# SPDX-License-Identifier: Apache-2.0
"""The kernel matrix: Debian's kernels booted under emulation, with the tests of the BPF programs run in each."""
